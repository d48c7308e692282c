import math

import pytest
from by_hand import timing

from strategies.measuring import Case, Cell, Measurement, Objective, Timing

CELL = Cell(
    Case("inv", (3, 3)),
    (
        Measurement("native", backward=timing(4.0), peak_bytes=100),
        Measurement("other", backward=timing(2.0, spread=2.0), peak_bytes=0),
        Measurement("refused", note="no"),
    ),
)


def test_a_speedup_has_the_interval_that_both_allow():
    assert CELL.speedup("native", "other") == (2.0, 1.0, 4.0)
    assert CELL.speedup("other", "other") == (1.0, 1.0, 1.0)


def test_what_was_not_measured_has_no_speedup():
    for name in ("refused", "unknown"):
        assert all(math.isnan(end) for end in CELL.speedup("native", name))
    assert math.isnan(CELL.speedup("native", "other", Objective.FORWARD_BACKWARD)[0])


def test_no_memory_is_not_infinitely_better():
    assert CELL.speedup("native", "other", Objective.MEMORY) == (100.0, 100.0, 100.0)
    assert CELL.get("refused").cost(Objective.MEMORY) is None


def test_a_median_lies_in_its_interval():
    with pytest.raises(ValueError, match="not between"):
        Timing(3.0, 1.0, 2.0, (1.0, 1.0))
