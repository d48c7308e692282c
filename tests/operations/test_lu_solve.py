"""Systems by LU factors: values, derivatives of all orders, and what the backward does not form."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

DTYPES = [torch.float64, torch.complex128, torch.float32, torch.complex64]
SIDES = list(itertools.product([True, False], [False, True]))
each_side = pytest.mark.parametrize(("left", "adjoint"), SIDES)
# Those whose own way with triangles is not another's.
TRIANGLES = {
    type(strategies.get(name)).factor_triangular: name for name in reversed(strategies.available())
}
each_strategy = pytest.mark.parametrize("strategy", sorted(TRIANGLES.values()))


def inputs_of(A_shape, B_shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    A, B = (torch.randn(*shape, dtype=dtype, generator=generator) for shape in (A_shape, B_shape))
    LU, pivots = torch.linalg.lu_factor(A)
    return LU.requires_grad_(), pivots, B.requires_grad_()


def batches_of(left):
    """Shapes of LU and B, alike and broadcast, empty in each way."""
    columns = (lambda *s: s) if left else (lambda *s: (*s[:-2], s[-1], s[-2]))
    return [
        ((3, 3), columns(3, 2)),
        ((2, 3, 3), columns(2, 3, 1)),
        ((3, 3), columns(4, 2, 3, 2)),
        ((2, 1, 3, 3), columns(5, 3, 2)),
        ((2, 3, 3), columns(3, 2)),
        ((0, 3, 3), columns(0, 3, 2)),
        ((0, 0), columns(0, 2)),
        ((3, 3), columns(3, 0)),
    ]


@each_side
@each_strategy
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, left, adjoint, dtype):
    for shapes in batches_of(left):
        LU, pivots, B = inputs_of(*shapes, dtype)
        found = []
        for function, options in (
            (torch.linalg.lu_solve, {}),
            (linalg.lu_solve, {"strategy": strategy}),
        ):
            X = function(LU, pivots, B, left=left, adjoint=adjoint, **options)
            found.append((X, *torch.autograd.grad(X.abs().square().sum(), (LU, B))))
        tolerance = torch.finfo(dtype).eps ** 0.5
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@each_side
@pytest.mark.parametrize("size", [127, 129, 300])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_several_blocks(size, batch, left, adjoint):
    LU, pivots, B = inputs_of((*batch, size, size), (*batch, size, size))
    X = linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint, strategy="triangular_solve")
    due = torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)
    G = torch.randn_like(X)
    for one, other in zip(
        torch.autograd.grad(X, (LU, B), G), torch.autograd.grad(due, (LU, B), G), strict=True
    ):
        assert (one - other).norm() < 1e-9 * other.norm()


@each_side
@pytest.mark.parametrize(
    "strategy", ["triangular_solve", pytest.param("explicit_inverse", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_derivatives_of_both_orders_in_both_modes(strategy, left, adjoint, dtype):
    for shapes in [((3, 3), (3, 3)), ((2, 1, 3, 3), (2, 3, 3))]:
        LU, pivots, B = inputs_of(*shapes, dtype)

        def call(LU, B, pivots=pivots):
            return linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint, strategy=strategy)

        assert gradcheck(
            call, (LU, B), fast_mode=True, check_forward_ad=True, check_batched_grad=True
        )
        assert gradgradcheck(call, (LU, B), fast_mode=True, check_fwd_over_rev=True, atol=1e-4)


def test_it_goes_through_a_factorization_and_back():
    A = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    B = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B, strategy="triangular_solve"), (A, B)
    )


@each_side
def test_vmap_over_any_of_its_inputs(left, adjoint):
    LU, pivots, B = (each.detach() for each in inputs_of((4, 3, 3), (4, 3, 3)))

    def call(LU, pivots, B):
        return linalg.lu_solve(
            LU, pivots, B, left=left, adjoint=adjoint, strategy="triangular_solve"
        )

    torch.testing.assert_close(torch.vmap(call)(LU, pivots, B), call(LU, pivots, B))
    mapped = torch.vmap(call, (None, None, 0))(LU[0], pivots[0], B)
    torch.testing.assert_close(mapped, call(LU[0], pivots[0], B))
    gradient = torch.func.grad(lambda LU, p, B: call(LU, p, B).sum())
    torch.testing.assert_close(
        torch.vmap(gradient)(LU, pivots, B),
        torch.stack([gradient(*each) for each in zip(LU, pivots, B, strict=True)]),
    )


@each_strategy
def test_a_singular_factor_gives_what_torch_gives(strategy):
    LU, pivots, B = (each.detach() for each in inputs_of((2, 3, 3), (2, 3, 1)))
    LU[1, 1, 1] = 0
    torch.testing.assert_close(
        linalg.lu_solve(LU, pivots, B, strategy=strategy),
        torch.linalg.lu_solve(LU, pivots, B),
        equal_nan=True,
    )


@pytest.mark.parametrize("wanted", [0, 1])
def test_the_gradient_of_one_input_only(wanted):
    LU, pivots, B = inputs_of((3, 3), (3, 2))
    leaf = (LU, B)[wanted]
    others = [LU.detach(), B.detach()]
    others[wanted] = leaf
    X = linalg.lu_solve(others[0], pivots, others[1], strategy="triangular_solve")
    due = torch.linalg.lu_solve(others[0], pivots, others[1])
    torch.testing.assert_close(
        torch.autograd.grad(X.sum(), leaf), torch.autograd.grad(due.sum(), leaf)
    )
