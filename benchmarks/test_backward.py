"""The backward of every cell: its accuracy is asserted, its time compared and shown."""

from __future__ import annotations

from typing import Any

from benchmarks.baseline import measured
from strategies import registry
from strategies.accuracy.judgement import judge
from strategies.accuracy.measures import amplification, error_ratio
from strategies.measuring.case import Case
from strategies.measuring.errors import checked_problem
from strategies.measuring.workload import backward_of


def test_backward(benchmark: Any, case: Case, strategy: str) -> None:
    """One backward, on a graph built before."""
    import pytest

    found = measured(case).get(strategy)
    assert found is not None
    if found.backward is None:
        pytest.skip(found.note)
    benchmark(backward_of(case, strategy))
    if found.error is not None:
        inputs, cotangents = checked_problem(case)
        grown = amplification(case.operation, inputs, cotangents, rank=case.known_rank)
        ratio = error_ratio(found.error, grown, case.dtype)
        judge(registry.get(strategy), case.operation, inputs[0], lambda: ratio)
