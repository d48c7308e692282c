"""Eigenvalues and eigenvectors: derivatives of losses that are independent of phases, and no others."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

DTYPES = [torch.float64, torch.complex128]
OURS = [name for name in strategies.available() if name != "native"]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def random(shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def invariants(strategy):
    """Outputs without phases: of each eigenvector the moduli, and products with its conjugate."""

    def call(A):
        values, V = linalg.eig(A, strategy=strategy)
        return values, V.abs(), V * V[..., :1, :].conj()

    return call


def due(A):
    values, V = torch.linalg.eig(A)
    return values, V.abs(), V * V[..., :1, :].conj()


@each_dtype
@pytest.mark.parametrize(
    "strategy", ["triangular_solve", pytest.param("explicit_inverse", marks=pytest.mark.slow)]
)
def test_derivatives_of_both_orders_in_both_modes(strategy, dtype):
    for shape in [(3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2)]:
        A = random(shape, dtype).requires_grad_()
        call = invariants(strategy)
        assert gradcheck(call, (A,), fast_mode=True, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(call, (A,), fast_mode=True, check_fwd_over_rev=True, atol=1e-4)


@pytest.mark.parametrize("strategy", OURS)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32, torch.complex64], ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, dtype):
    A = random((2, 5, 5), dtype).requires_grad_()
    found, expected = invariants(strategy)(A), due(A)
    cotangents = [random(each.shape, each.dtype, seed=1) for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    (one,), (other,) = (torch.autograd.grad(each, A, cotangents) for each in (found, expected))
    tolerance = 10 * torch.finfo(dtype).eps ** 0.5
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("strategy", OURS)
def test_a_loss_of_phases_is_refused_in_torchs_words(strategy):
    A = random((3, 3), torch.complex128).requires_grad_()
    messages = []
    for V in (torch.linalg.eig(A).eigenvectors, linalg.eig(A, strategy=strategy).eigenvectors):
        with pytest.raises(RuntimeError, match=r"e\^{i phi}") as refused:
            (V * random((3, 3), seed=1)).sum().real.backward()
        messages.append(str(refused.value).splitlines()[0])
    assert messages[0] == messages[1]


@pytest.mark.parametrize("strategy", OURS)
def test_a_defective_matrix_is_refused_in_the_backward(strategy):
    A = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    values = linalg.eig(A, strategy=strategy).eigenvalues
    assert values.tolist() == [1, 1]
    with pytest.raises(torch.linalg.LinAlgError, match="backward of eig"):
        torch.autograd.grad(values.abs().sum(), A)


def test_vmap_and_a_jacobian():
    A = random((4, 3, 3))
    call = invariants("triangular_solve")
    torch.testing.assert_close(torch.vmap(call)(A), call(A))
    reverse, forward = (
        jacobian(lambda A: call(A)[1])(A[0]) for jacobian in (torch.func.jacrev, torch.func.jacfwd)
    )
    torch.testing.assert_close(reverse, forward)
