"""The backward of every cell, timed by pytest-benchmark; its accuracy is asserted."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks import grid
from benchmarks.suite import gradient_error, prepared
from strategies.measuring import peak_bytes

TEST_RATIO = 30
"""LAPACK's limit for an error in units of κ·u·max(m, n); κ is 10 in these cases."""


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
    except NotImplementedError as refusal:
        pytest.skip(str(refusal))
    error = gradient_error(case, backward)
    benchmark.extra_info.update(
        operation=operation, error=error, peak_bytes=peak_bytes(backward, device)
    )
    benchmark(backward)
    assert error < TEST_RATIO * 10 * max(case.shape) * torch.finfo(case.dtype).eps
