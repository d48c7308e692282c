"""The parts of a call that are timed."""

import pytest

from benchmarks.microseconds import parts
from strategies.measuring.case import Case


@pytest.mark.parametrize("operation", ["inv", "lstsq", "slogdet"])
def test_all_parts_run(operation):
    for call in parts(Case(operation, (4, 4))).values():
        call()


def test_a_case_without_a_fast_path_is_refused():
    with pytest.raises(ValueError, match="does not take pinv 6x4 rank=2"):
        parts(Case("pinv", (6, 4), rank=2))
