"""Operations by a Cholesky factor are differentiated as solves with a full matrix."""

import pytest
import torch
from torch.autograd.functional import hessian

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


def matrices():
    F, B = torch.randn(2, 3, 3, dtype=torch.float64)
    return F.tril(-1) + torch.diag(2 + F.diagonal().abs()), B[:, :2]


@pytest.mark.parametrize("vectorize", [False, True])
@each_strategy
@each_function
def test_hessians_by_one_cotangent_or_by_many(function, due, strategy, vectorize):
    L, B = matrices()
    found = hessian(lambda L: function(L, B, strategy=strategy).sin().sum(), L, vectorize=vectorize)
    torch.testing.assert_close(found, hessian(lambda L: due(L @ L.mH, B).sin().sum(), L))
