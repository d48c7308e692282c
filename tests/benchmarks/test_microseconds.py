"""The parts of a call that are timed."""

import pytest
from torch import Tensor

from benchmarks.microseconds import parts
from strategies.measuring.case import Case


@pytest.mark.parametrize("operation", ["inv", "lstsq", "slogdet"])
def test_all_parts_run(operation):
    calls = parts(Case(operation, (4, 4)))
    for call in calls.values():
        call()
    for path in ("generic", "fast"):
        called = calls[f"forward: {path} path"]()
        output = (
            called if isinstance(called, Tensor) else called[-1 if operation == "slogdet" else 0]
        )
        assert ("FastPath" in output.grad_fn.name()) is (path == "fast")


def test_a_case_without_a_fast_path_is_refused():
    with pytest.raises(ValueError, match="does not take pinv 6x4 rank=2"):
        parts(Case("pinv", (6, 4), rank=2))
