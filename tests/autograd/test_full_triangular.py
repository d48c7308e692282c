"""Operations by a Cholesky factor are differentiated as solves with a full matrix."""

import pytest
import torch
from torch.autograd.functional import hessian
from torch.func import jacfwd, jacrev

from strategies import linalg

FUNCTIONS = {
    "cholesky_inverse": (
        lambda L, _, **by: linalg.cholesky_inverse(L, **by),
        lambda A, _: torch.linalg.inv(A),
    ),
    "cholesky_solve": (lambda L, B, **by: linalg.cholesky_solve(B, L, **by), torch.linalg.solve),
}
each_function = pytest.mark.parametrize(("function", "due"), FUNCTIONS.values(), ids=FUNCTIONS)
each_strategy = pytest.mark.parametrize("strategy", ["auto", "triangular_solve"])


def matrices(dtype=torch.float64):
    F, B, direction = torch.randn(3, 3, 3, dtype=dtype)
    return F.tril(-1) + torch.diag(2 + F.diagonal().real.abs()), B[:, :2], direction


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("differentiate", [jacrev, jacfwd])
@each_strategy
@each_function
def test_derivatives_to_the_third_order(function, due, strategy, differentiate, dtype):
    L, B, direction = matrices(dtype)

    def along(function, differentiate):
        def value(t):
            return torch.view_as_real(function(L + t * direction) + 0j)

        third = differentiate(differentiate(differentiate(value)))
        return third(torch.zeros((), dtype=torch.float64))

    found = along(lambda L: function(L, B, strategy=strategy), differentiate)
    torch.testing.assert_close(found, along(lambda L: due(L @ L.mH, B), jacrev))


@pytest.mark.parametrize("vectorize", [False, True])
@each_strategy
@each_function
def test_hessians_by_one_cotangent_or_by_many(function, due, strategy, vectorize):
    L, B, _ = matrices()
    found = hessian(lambda L: function(L, B, strategy=strategy).sin().sum(), L, vectorize=vectorize)
    torch.testing.assert_close(found, hessian(lambda L: due(L @ L.mH, B).sin().sum(), L))
