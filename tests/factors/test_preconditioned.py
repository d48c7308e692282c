"""A⁺ at full rank by an orthonormal basis that moves: derivatives of every order, in every mode."""

import pytest
import torch
from comparison import drawn
from torch.func import jacfwd, jacrev

from strategies.factors.preconditioned import Preconditioned
from strategies.linalg import lstsq, pinv
from tests.factors.cofactors import adjugate, determinant, entries

close = torch.testing.assert_close
NESTED = {
    "reverse thrice": lambda f: jacrev(jacrev(jacrev(f))),
    "forward over reverse": lambda f: jacfwd(jacrev(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "forward twice": lambda f: jacfwd(jacfwd(f)),
    "forward over reverse twice": lambda f: jacfwd(jacrev(jacrev(f))),
}


@pytest.mark.parametrize("mode", NESTED)
@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_modes_nest(shape, mode):
    A, B = drawn(*shape), drawn(shape[0], 1)

    def by_normal_equations(A):
        gram = A @ A.mT if shape[0] < shape[1] else A.mT @ A
        inverse = adjugate(gram) / determinant(entries(gram))
        return A.mT @ inverse if shape[0] < shape[1] else inverse @ A.mT

    close(NESTED[mode](pinv)(A), NESTED[mode](by_normal_equations)(A))
    found = NESTED[mode](lambda A: lstsq(A, B).solution)(A)
    close(found, NESTED[mode](lambda A: by_normal_equations(A) @ B)(A))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_square_matrix_whose_elimination_grows_keeps_its_digits(dtype):
    n = 24 if dtype == torch.float32 else 68
    A = torch.eye(n, dtype=dtype) - torch.ones(n, n, dtype=dtype).tril(-1)  # Wilkinson's
    A[:, -1] = 1
    A.requires_grad_()
    B, G = drawn(n, 1).to(dtype), drawn(n, 1, seed=1).to(dtype)
    found, due = (
        torch.autograd.grad(lstsq(A, B).solution, A, G, create_graph=recorded)[0]
        for recorded in (True, False)
    )
    close(found.detach(), due, rtol=0, atol=100 * torch.finfo(dtype).eps * float(due.abs().max()))


def test_a_square_matrix_whose_rows_differ_in_size_keeps_its_digits():
    sizes = 10.0 ** torch.linspace(-4, 4, 6, dtype=torch.float64).unsqueeze(-1)
    A = (drawn(6, 6) * sizes).float().requires_grad_()
    inverse, G = torch.linalg.inv(A.detach().double()), drawn(6, 6, seed=1) * sizes.mT
    found = Preconditioned.of(A).dense()
    (gradient,) = torch.autograd.grad(found, A, G.float())
    close(found.double() * sizes.mT, inverse * sizes.mT, rtol=0, atol=1e-4)
    close(gradient.double() * sizes, -inverse.mT @ G @ inverse.mT * sizes, rtol=0, atol=1e-3)


def test_a_matrix_of_lower_rank_takes_others_of_its_batch_along():
    A, G, along = drawn(2, 4, 2), drawn(2, 2, 4), drawn(2, 4, 2)
    A[1, :, 1] = A[1, :, 0]
    along[1, :, 1] = along[1, :, 0]  # keeps the rank

    def second(pinv, i):
        at = A[i].clone().requires_grad_()
        (first,) = torch.autograd.grad(pinv(at), at, G[i], create_graph=True)
        return torch.autograd.grad(first, at, along[i])[0]

    for i in (0, 1, slice(None)):
        close(second(pinv, i), second(torch.linalg.pinv, i))
