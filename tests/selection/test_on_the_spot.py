import pytest

from strategies.measuring import Case
from strategies.selection.on_the_spot import measure, question_case
from strategies.selection.rows import COLUMNS


def test_a_case_is_measured_into_rows():
    rows = measure(Case("pinv", (12, 4)), ["triangular_solve", "native"], budget=0.01)
    assert list(rows.columns) == COLUMNS
    assert list(rows["strategy"]) == ["native", "triangular_solve"]
    assert set(rows["status"]) == {"ok"}
    assert rows["error"].between(0, 1e-13).all()
    assert (rows["speedup_over_native_low"] <= rows["speedup_over_native_high"]).all()


def test_what_a_strategy_refuses_is_not_available():
    rows = measure(Case("pinv", (12, 4), rank=2), ["native", "triangular_solve"], budget=0.01)
    assert dict(zip(rows["strategy"], rows["status"], strict=True)) == {
        "native": "ok",
        "triangular_solve": "n/a",
    }


def test_native_is_not_asked_for_what_it_has_no_memory_for():
    case = Case("pinv", (40_000, 2))
    rows = measure(case, ["native", "triangular_solve"], budget=0.01, forward_too=False)
    assert list(rows["status"]) == ["n/a", "ok"]


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="unknown dtype 'float16'"):
        question_case("pinv", {"m": 4, "n": 4, "rhs": 1, "rank": None}, 0, "float16", "cpu")
