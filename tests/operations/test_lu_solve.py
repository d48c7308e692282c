"""Systems by LU factors: values, derivatives of all orders, and what the backward does not form."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from comparison import drawn, require_alike, require_derivatives, with_gradients
from operations import ALL_DTYPES, each_dtype
from torch.autograd import gradcheck

import strategies
from strategies import linalg

SIDES = list(itertools.product([True, False], [False, True]))
each_side = pytest.mark.parametrize(("left", "adjoint"), SIDES)
# Those whose own way with triangles is not another's.
TRIANGLES = {
    type(strategies.get(name)).factor_triangular: name for name in reversed(strategies.available())
}
each_strategy = pytest.mark.parametrize("strategy", sorted(TRIANGLES.values()))


def inputs_of(A_shape, B_shape, dtype=torch.float64):
    A, B = drawn(*A_shape, dtype=dtype), drawn(*B_shape, dtype=dtype, seed=1)
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
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, left, adjoint, dtype):
    options = {"left": left, "adjoint": adjoint}
    tolerances = dict.fromkeys(("rtol", "atol"), torch.finfo(dtype).eps ** 0.5)
    for shapes in batches_of(left):
        require_alike(
            functools.partial(linalg.lu_solve, **options, strategy=strategy),
            functools.partial(torch.linalg.lu_solve, **options),
            *inputs_of(*shapes, dtype),
            **tolerances,
        )


@each_side
@pytest.mark.parametrize("size", [127, 129, 300])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_several_blocks(size, batch, left, adjoint):
    inputs = inputs_of((*batch, size, size), (*batch, size, size))
    options = {"left": left, "adjoint": adjoint}
    ours = functools.partial(linalg.lu_solve, **options, strategy="triangular_solve")
    theirs = functools.partial(torch.linalg.lu_solve, **options)
    for one, other in zip(*(with_gradients(each, *inputs) for each in (ours, theirs)), strict=True):
        assert (one - other).norm() < 1e-9 * other.norm()


@each_side
@pytest.mark.parametrize(
    "strategy", ["triangular_solve", pytest.param("explicit_inverse", marks=pytest.mark.slow)]
)
@each_dtype
def test_derivatives_of_both_orders_in_both_modes(strategy, left, adjoint, dtype):
    for shapes in [((3, 3), (3, 3)), ((2, 1, 3, 3), (2, 3, 3))]:
        LU, pivots, B = inputs_of(*shapes, dtype)

        def call(LU, B, pivots=pivots):
            return linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint, strategy=strategy)

        require_derivatives(call, (LU, B))


def test_it_goes_through_a_factorization_and_back():
    A = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    B = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B, strategy="triangular_solve"), (A, B)
    )


@each_side
def test_vmap_over_any_of_its_inputs(left, adjoint):
    LU, pivots, B = (each.detach() for each in inputs_of((4, 3, 3), (4, 3, 3)))
    call = functools.partial(
        linalg.lu_solve, left=left, adjoint=adjoint, strategy="triangular_solve"
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


@pytest.mark.parametrize("wanted", [0, 2])
def test_the_gradient_of_one_input_only(wanted):
    LU, pivots, B = inputs_of((3, 3), (3, 2))
    inputs = [LU.detach(), pivots, B.detach()]
    inputs[wanted].requires_grad_()
    ours = functools.partial(linalg.lu_solve, strategy="triangular_solve")
    require_alike(ours, torch.linalg.lu_solve, *inputs)
