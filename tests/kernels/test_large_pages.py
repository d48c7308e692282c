"""Memory is that of torch, large or small."""

import pytest
import torch

from strategies.kernels.large_pages import uninitialized


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("side", [0, 3, 1100])
def test_it_is_writable_and_by_rows(side, dtype):
    made = uninitialized(torch.ones(1, dtype=dtype), 2, side, side).fill_(1)
    assert made.dtype == dtype
    assert made.is_contiguous()
    assert made.sum() == 2 * side**2
