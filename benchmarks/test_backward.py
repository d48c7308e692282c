"""The backward of every cell: its stability is asserted, its time compared and shown."""

import math
from typing import Any

from benchmarks.baseline import measured
from strategies.measuring import Case, backward_of
from strategies.measuring.stability import measure_stability
from strategies.policy import SHIPPED
from strategies.policy.schema import LIMIT, Policy
from strategies.selection.stability import evidence_in

LARGEST_JUDGED = 2**21
"""The most multiplications in a matrix product for which exact gradients take a second or two."""


def test_backward(benchmark: Any, case: Case, strategy: str) -> None:
    """One backward, on a graph built before."""
    import pytest

    found = measured(case).get(strategy)
    assert found is not None
    if found.backward is None:
        pytest.skip(found.note)
    benchmark(backward_of(case, strategy))
    known = evidence_in(Policy.read(SHIPPED), case).get(strategy)
    if known and known.is_stable and math.prod(case.shape) * min(case.shape) <= LARGEST_JUDGED:
        (judged,) = measure_stability(case, [strategy])
        assert judged.stability is None or judged.stability.worst <= LIMIT, judged
