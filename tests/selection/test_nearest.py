import pytest
from by_hand import cell_of, run_of, took

from strategies.measuring.case import Case
from strategies.selection.nearest import answer, distance, matching, nearest_cells
from strategies.selection.verdicts import judge


@pytest.fixture
def cells():
    cases = ("pinv 64x8", "pinv 4096x32", "pinv 4096x32 rank=5", "pinv 1000x8x8")
    measured = took("native", 2), took("qr_pinv", 1)
    return judge([run_of(*(cell_of(*measured, case=case) for case in cases))])


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("pinv 3000x40", "pinv 4096x32 float64 cpu"),
        ("pinv 64x8 rank=2", "pinv 4096x32 rank=5 float64 cpu"),
        ("pinv 500x8x8", "pinv 1000x8x8 float64 cpu"),
    ],
)
def test_the_nearest_in_log_size_comes_first(cells, asked, nearest):
    case = Case.parse(asked)
    found = nearest_cells(cells, case)
    assert str(found[0].case) == nearest
    distances = [distance(cell.case, case) for cell in found]
    assert distances == sorted(distances)


def test_a_factor_of_two_is_a_distance_of_one():
    assert distance(Case.parse("pinv 64x8"), Case.parse("pinv 128x8")) == 1


def test_the_nearest_answer_between_them(cells):
    case = Case.parse("pinv 100x8")
    assert answer(nearest_cells(cells, case), case) == ("qr_pinv", "native")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"operation": "lstsq"}, "operation lstsq; there is pinv"),
        ({"dtype": "float16"}, "dtype float16; there is float64"),
        ({"device": "cuda:0"}, "device cuda:0; there is cpu"),
    ],
)
def test_what_was_not_measured_is_said_with_what_was(cells, question, said):
    with pytest.raises(ValueError, match=said):
        matching(cells, **question)


def test_a_kind_of_rank_that_was_not_measured_is_said(cells):
    with pytest.raises(ValueError, match="no rank-deficient matrix"):
        nearest_cells(cells[:2], Case.parse("pinv 8x8 rank=2"))
