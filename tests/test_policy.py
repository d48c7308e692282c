import subprocess
import sys
import warnings

import pytest

from strategies import policy as policies
from strategies import registry
from strategies.files import UnusableFileError
from strategies.policy_file import Cell, Default, OperationPolicy, Policy

SIZES = {"rhs": 1, "batch": 0, "dtype": "float64", "device": "cpu"}


def names(operation, *, any_rank=False, device="cpu"):
    found = policies.candidates(operation, 8, 8, **SIZES | {"device": device}, any_rank=any_rank)
    return [strategy.name for strategy in found]


def made_of(*cells, default=None):
    entry = OperationPolicy(cells={"cpu": {"float64": cells}}, full_rank=default)
    return Policy(operations={"pinv": entry})


def test_where_the_best_is_not_installed_the_next_best_is_used():
    known = Cell(8, 8, 1, 0, None, "somebody_elses", (), {"somebody_elses": 1, "native": 3})
    default = Default("somebody_elses", ("native",), 1.0, 1.0, 1, 0)
    with policies.use(made_of(known, default=default)):
        assert names("pinv") == names("pinv", device="cuda") == ["native"]


def test_what_refuses_a_rank_is_followed_by_the_best_that_takes_any():
    full = Cell(8, 8, 1, 0, None, "triangular_solve", (), {"triangular_solve": 1, "native": 3})
    deficient = Cell(8, 8, 1, 0, 2, "svd_truncated_pinv", (), {"svd_truncated_pinv": 1})
    with policies.use(made_of(full, deficient)):
        assert names("pinv") == ["triangular_solve"]
        assert names("pinv", any_rank=True) == ["triangular_solve", "svd_truncated_pinv"]
    with policies.use(made_of(full)):
        assert names("pinv", any_rank=True) == ["triangular_solve", "qr_pinv"]


def test_what_was_never_measured_gets_the_simplest_stable_strategy():
    with policies.use(made_of()):
        assert names("det") == ["triangular_solve"]
        assert names("lstsq", any_rank=True) == ["qr_pinv"]


def test_a_strategy_can_stand_for_auto_by_its_name_and_by_itself():
    for choice in ("explicit_inverse", registry.get("explicit_inverse")):
        with policies.use(choice):
            assert names("inv") == ["explicit_inverse"]


def test_a_file_that_is_no_policy_is_refused_where_it_is_named(tmp_path):
    with pytest.raises(UnusableFileError, match="nowhere"), policies.use(tmp_path / "nowhere.json"):
        pass


@pytest.fixture
def fresh():
    """As if nothing had asked for "auto" yet, before and afterwards."""
    policies.refresh()
    yield
    policies.refresh()


@pytest.mark.parametrize("bad", ["nowhere.json", "no_such_strategy"])
def test_a_bad_variable_is_told_once_and_the_shipped_policy_answers(fresh, monkeypatch, bad):
    monkeypatch.setenv("BACKWARD_STRATEGIES_USE", bad)
    with pytest.warns(RuntimeWarning, match=f"BACKWARD_STRATEGIES_USE={bad}: ") as caught:
        first = names("pinv")
    assert len(caught) == 1
    with warnings.catch_warnings(action="error"):
        assert names("pinv") == first
    with policies.use(policies.SHIPPED):
        assert names("pinv") == first


@pytest.mark.parametrize("content", [None, "", "{", '{"format": "a recipe", "version": 1}'])
def test_a_shipped_policy_that_is_damaged_is_done_without(fresh, monkeypatch, tmp_path, content):
    shipped = tmp_path / "policy.json"
    if content is not None:
        shipped.write_text(content)
    monkeypatch.delenv("BACKWARD_STRATEGIES_USE", raising=False)
    monkeypatch.setattr(policies, "SHIPPED", shipped)
    with pytest.warns(RuntimeWarning, match=r"policy\.json: "):
        assert names("inv") == ["triangular_solve"]


def test_no_file_is_read_before_the_first_auto():
    program = (
        "import strategies, torch; from strategies import policy;"
        "assert policy._sources.cache_info().currsize == 0;"
        "strategies.linalg.inv(torch.eye(2));"
        "assert policy._sources.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
