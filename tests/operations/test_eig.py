"""Eigenvalues and eigenvectors: derivatives of losses that are independent of phases, and no others."""

import functools

import pytest
import torch
from comparison import drawn, require_alike, require_derivatives
from operations import ALL_DTYPES, STRATEGIES, each_dtype

from strategies import linalg


def invariants(call):
    """Outputs without phases: of each eigenvector the moduli, and products with its conjugate."""

    def of_matrix(A):
        values, V = call(A)
        return values, V.abs(), V * V[..., :1, :].conj()

    return of_matrix


def by(strategy):
    return invariants(functools.partial(linalg.eig, strategy=strategy))


@each_dtype
@pytest.mark.parametrize(
    "strategy", ["triangular_solve", pytest.param("explicit_inverse", marks=pytest.mark.slow)]
)
def test_derivatives_of_both_orders_in_both_modes(strategy, dtype):
    for shape in [(3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2)]:
        require_derivatives(by(strategy), (drawn(*shape, dtype=dtype).requires_grad_(),))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, dtype):
    A = drawn(2, 5, 5, dtype=dtype).requires_grad_()
    assert all(map(torch.equal, linalg.eig(A, strategy=strategy), torch.linalg.eig(A)))
    tolerances = dict.fromkeys(("rtol", "atol"), 10 * torch.finfo(dtype).eps ** 0.5)
    require_alike(by(strategy), invariants(torch.linalg.eig), A, **tolerances)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_loss_of_phases_is_refused_in_torchs_words(strategy):
    A = drawn(3, 3, dtype=torch.complex128).requires_grad_()
    messages = []
    for V in (torch.linalg.eig(A).eigenvectors, linalg.eig(A, strategy=strategy).eigenvectors):
        with pytest.raises(RuntimeError, match=r"e\^{i phi}") as refused:
            (V * drawn(3, 3, seed=1)).sum().real.backward()
        messages.append(str(refused.value).splitlines()[0])
    assert messages[0] == messages[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_defective_matrix_is_refused_in_the_backward(strategy):
    A = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    values = linalg.eig(A, strategy=strategy).eigenvalues
    assert values.tolist() == [1, 1]
    with pytest.raises(torch.linalg.LinAlgError, match="backward of eig"):
        torch.autograd.grad(values.abs().sum(), A)
