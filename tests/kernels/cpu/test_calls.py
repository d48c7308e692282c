"""Kernels that are called with tensors: flops, empty batches, and what they do not take."""

import pytest
import torch
from comparison import drawn

from strategies.kernels.cpu import calls
from strategies.kernels.cpu.library import DTYPES
from strategies.kernels.cpu.task import watchers


def inverses(*shape, dtype=torch.float64):
    """The inverses of well-conditioned matrices, and ones as their cotangents."""
    A = torch.randn(*shape, dtype=dtype)
    A = A + 3 * torch.eye(shape[-1], dtype=dtype)
    return torch.linalg.inv(A), torch.ones(shape, dtype=dtype)


def test_watchers_hear_of_complex_work_as_four_times_the_real():
    heard = []
    watchers.append(heard.append)
    try:
        for dtype in (torch.float64, torch.complex128):
            X, G = inverses(9, 3, 3, dtype=dtype)
            calls.inv_backward(X.mT, G)
    finally:
        watchers.remove(heard.append)
    assert heard == [9 * 4 * 27, 4 * 9 * 4 * 27]


def lu_backward(LU, pivots, cotangent):
    order = torch.empty(LU.shape[:-1], dtype=torch.int64)
    calls.inverse_order(pivots, order)
    return calls.lu_backward(LU.mT, order, cotangent)


PACKS = {
    "inv": (torch.linalg.inv, lambda A, X, G: (calls.inv_backward(X.mT, G),)),
    "solve": (
        torch.linalg.solve,
        lambda A, B, X, G: calls.solve_backward(
            X, torch.linalg.lu_factor(A).LU.mT, torch.linalg.lu_factor(A).pivots, G
        ),
    ),
    "lstsq": (
        lambda A, B: torch.linalg.pinv(A) @ B,
        lambda A, B, X, G: calls.lstsq_backward(
            A, B, X, torch.linalg.qr(A).R.mT, G, A.new_empty(*A.shape[:-2], 0)
        ),
    ),
    "pinv": (
        torch.linalg.pinv,
        lambda A, X, G: (calls.pinv_backward(*(each.mT for each in torch.linalg.qr(A)), G).mT,),
    ),
    "lu_factor": (
        lambda A: torch.linalg.lu_factor(A).LU,
        lambda A, LU, G: (lu_backward(LU, torch.linalg.lu_factor(A).pivots, G),),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(13,), (130,), (2, 3, 4)])
@pytest.mark.parametrize("name", PACKS)
def test_gradients_in_packs_are_those_of_torch(name, batch, dtype):
    function, backward = PACKS[name]
    m, n = (8, 3) if name in ("lstsq", "pinv") else (5, 5)
    inputs = [drawn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)]
    if name in ("solve", "lstsq"):
        inputs.append(drawn(*batch, m, 2, dtype=dtype, seed=1))
    leaves = [each.clone().requires_grad_() for each in inputs]
    result = function(*leaves)
    G = drawn(*result.shape, dtype=dtype, seed=2)
    limit = 100 * torch.finfo(dtype).eps * torch.linalg.cond(inputs[0])
    for cotangent in (G, G.mT.contiguous().mT, G.conj()):
        due = torch.autograd.grad(result, leaves, cotangent, retain_graph=True)
        found = backward(*inputs, result.detach(), cotangent)
        for ours, theirs in zip(found, due, strict=True):
            errors, sizes = (each.norm(dim=(-2, -1)) for each in (ours - theirs, theirs))
            assert (errors <= limit * sizes).all()


def test_signs_and_conjugates_that_torch_merely_notes_are_seen():
    X, _ = inverses(9, 4, 4)
    noted = torch.randn(9, 4, 4, dtype=torch.complex128).conj().imag
    assert noted.is_neg()
    assert torch.equal(calls.inv_backward(X.mT, noted), calls.inv_backward(X.mT, noted.clone()))


def test_what_a_kernel_does_not_take_is_left_to_operations_of_torch():
    for X in (torch.ones(0, 3, 3), torch.ones(2, 3, 3), torch.ones(9, 60, 60)):
        assert calls.inv_backward(X, X) is NotImplemented
    meta = torch.empty(9, 4, 4, device="meta")
    assert calls.inv_backward(meta, meta) is NotImplemented
    X, G = inverses(9, 4, 4)
    G *= torch.finfo(G.dtype).max / 64  # declined: no power of two in range brings it near one
    assert calls.inv_backward(X.mT, G) is NotImplemented
