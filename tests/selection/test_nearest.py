import pandas as pd
import pytest

from strategies.selection.nearest import Question, matching, nearest_cells


@pytest.fixture
def table(rows_of, at_speed):
    sizes = [{"m": 64, "n": 8}, {"m": 4096, "n": 32}, {"m": 4096, "n": 32, "rank": 5}]
    sizes += [{"m": 8, "n": 8, "batch": 1000}]
    parts = [rows_of(at_speed("native", 1), at_speed("qr_pinv", 2), **size) for size in sizes]
    return pd.concat(parts, ignore_index=True)


def first(cells):
    return cells[0].iloc[0]


def test_the_nearest_in_log_size_comes_first(table):
    cells = nearest_cells(table, Question("pinv", "3000x40"))
    assert first(cells)["m"] == 4096
    assert [len(cell) for cell in cells] == [2, 2, 2]
    distances = [cell["distance"].iloc[0] for cell in cells]
    assert distances == sorted(distances)


def test_a_measured_case_is_at_no_distance(table):
    assert first(nearest_cells(table, Question("pinv", "64x8")))["distance"] == 0


def test_a_factor_of_two_is_a_distance_of_one(table):
    assert first(nearest_cells(table, Question("pinv", "128x8")))["distance"] == 1


def test_deficient_rank_has_its_own_cells(table):
    assert first(nearest_cells(table, Question("pinv", "64x8 rank=2")))["rank"] == 5


def test_batches_count(table):
    assert first(nearest_cells(table, Question("pinv", "8x8", batch=500)))["batch"] == 1000


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question("lstsq"), "operation lstsq; there is pinv"),
        (Question("pinv", dtype="float16"), "dtype float16; there is float64"),
        (Question("pinv", device="cuda:0"), "device cuda:0; there is cpu"),
    ],
)
def test_what_was_not_measured_is_said_with_what_was(table, question, said):
    with pytest.raises(ValueError, match=said):
        matching(table, question)


def test_a_shape_that_is_none_is_refused_at_once():
    with pytest.raises(ValueError, match="is not a shape"):
        Question("pinv", "large")
