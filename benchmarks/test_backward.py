"""The backward of every cell, timed by pytest-benchmark; its accuracy is asserted."""

from __future__ import annotations

from typing import Any

from benchmarks import grid
from benchmarks.baseline import over_native
from benchmarks.suite import error_limit, gradient_error, prepared
from strategies.measuring import peak_bytes

SECONDS = 0.1
"""For the comparison with native."""


def test_backward(
    benchmark: Any,
    operation: str,
    strategy: str,
    shape: str,
    batch: int,
    dtype: str,
    device: str,
) -> None:
    """One backward, on a graph built before."""
    import pytest

    case = grid.case_of(operation, shape, batch, dtype, device)
    try:
        backward, _ = prepared(case, strategy)
        native, _ = prepared(case, "native")
    except NotImplementedError as refusal:
        pytest.skip(str(refusal))
    error = gradient_error(case, backward)
    benchmark.extra_info.update(
        operation=operation,
        error=error,
        peak_bytes=peak_bytes(backward, device),
        speedup_over_native=1 / over_native(backward, native, SECONDS),
    )
    benchmark(backward)
    assert error < error_limit(case)
