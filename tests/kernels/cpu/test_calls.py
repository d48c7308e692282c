"""Kernels that are called with tensors: flops, empty batches, and what they do not take."""

import pytest
import torch
from comparison import drawn

from strategies.kernels.cpu import calls
from strategies.kernels.cpu.library import DTYPES
from strategies.kernels.cpu.task import watchers


def factors(*shape, dtype=torch.float64):
    """Lower triangles by columns, and cotangents."""
    upper = drawn(*shape, dtype=dtype).triu() + 3 * torch.eye(shape[-1], dtype=dtype)
    return upper.mT, drawn(*shape, dtype=dtype, seed=1)


def test_watchers_hear_of_complex_work_as_four_times_the_real():
    heard = []
    watchers.append(heard.append)
    try:
        for dtype in (torch.float64, torch.complex128):
            calls.reverse_cholesky(*factors(9, 3, 3, dtype=dtype))
    finally:
        watchers.remove(heard.append)
    assert heard == pytest.approx([9 * 18, 4 * 9 * 18])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (13,), (130,), (2, 3, 4), (0,)])
def test_batches_of_any_dimensions_are_matrix_after_matrix(batch, dtype):
    L, G = factors(*batch, 5, 5, dtype=dtype)
    found = calls.reverse_cholesky(L, G)
    if L.numel():
        pairs = zip(L.flatten(0, -3), G.flatten(0, -3), strict=True) if batch else [(L, G)]
        each = torch.stack([calls.reverse_cholesky(*pair) for pair in pairs])
        assert torch.equal(found.reshape(each.shape), each)


def test_signs_and_conjugates_that_torch_merely_notes_are_seen():
    L, _ = factors(9, 4, 4)
    noted = torch.randn(9, 4, 4, dtype=torch.complex128).conj().imag
    assert noted.is_neg()
    found, due = (calls.reverse_cholesky(L, each) for each in (noted, noted.clone()))
    assert torch.equal(found, due)


def test_what_a_kernel_does_not_take_is_left_to_operations_of_torch():
    for X in (torch.ones(0, 3, 3), torch.empty(9, 4, 4, device="meta")):
        assert calls.smallest_of_triangle(X) is NotImplemented
