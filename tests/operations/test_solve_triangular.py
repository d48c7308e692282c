"""Triangular systems: values, derivatives of all orders, and only one triangle read or given back."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from comparison import drawn, require_alike, require_derivatives, with_gradients
from operations import ALL_DTYPES, real_first

import strategies
from strategies import linalg

each_dtype = pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
OPTIONS = [
    {"upper": upper, "left": left, "unitriangular": unit}
    for upper, left, unit in itertools.product([True, False], repeat=3)
]
each_option = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(name for name, is_set in o.items() if is_set)
)
# Those whose own way with triangles is not another's.
TRIANGLES = {
    type(strategies.get(name)).factor_triangular: name for name in reversed(strategies.available())
}
each_strategy = pytest.mark.parametrize("strategy", sorted({*TRIANGLES.values(), "fused"}))


def inputs_of(A_shape, B_shape, options, dtype=torch.float64):
    A, B = drawn(*A_shape, dtype=dtype), drawn(*B_shape, dtype=dtype, seed=1)
    A = A / max(A.shape[-1], 1) + torch.eye(A.shape[-1])
    return A.requires_grad_(), (B if options["left"] else B.mT.contiguous()).requires_grad_()


def call_by(strategy, options):
    return functools.partial(linalg.solve_triangular, **options, strategy=strategy)


BATCHES = [
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3, 1)),
    ((3, 3), (4, 2, 3, 2)),
    ((2, 1, 3, 3), (5, 3, 2)),
    ((2, 3, 3), (3, 2)),
    ((0, 3, 3), (0, 3, 2)),
    ((0, 0), (0, 2)),
    ((3, 3), (3, 0)),
    ((40, 40), (40, 3)),
    ((150, 150), (150, 6)),
    ((300, 300), (300, 2)),
]


@each_option
@each_strategy
@each_dtype
def test_values_and_gradients_are_those_of_torch(strategy, options, dtype):
    tolerances = dict.fromkeys(("rtol", "atol"), torch.finfo(dtype).eps ** 0.5)
    for shapes in BATCHES:
        require_alike(
            call_by(strategy, options),
            functools.partial(torch.linalg.solve_triangular, **options),
            *inputs_of(*shapes, options, dtype),
            **tolerances,
        )


@each_option
@pytest.mark.parametrize("strategy", ["triangular_solve", "explicit_inverse"])
@real_first
def test_derivatives_of_both_orders_in_both_modes(strategy, options, dtype):
    for shapes in [((3, 3), (3, 3)), ((2, 1, 3, 3), (2, 3, 3))]:
        require_derivatives(call_by(strategy, options), inputs_of(*shapes, options, dtype))


@each_option
@each_strategy
def test_what_stands_for_nothing_is_not_read(strategy, options):
    A, B = (each.detach() for each in inputs_of((4, 4), (4, 2), options))
    triangle = A.triu() if options["upper"] else A.tril()
    if options["unitriangular"]:
        triangle.diagonal().fill_(1)
    other = torch.full_like(A, torch.nan)
    noisy = torch.where(triangle == 0, other, triangle)
    if options["unitriangular"]:
        noisy.diagonal().fill_(torch.nan)

    call = call_by(strategy, options)
    found, due = (with_gradients(call, each.requires_grad_(), B) for each in (noisy, triangle))
    torch.testing.assert_close(found, due)
    unread = triangle == 0
    if options["unitriangular"]:
        unread.diagonal().fill_(True)
    assert not found[1][unread].any()


@each_option
def test_vmap_over_any_of_its_inputs(options):
    A, B = (each.detach() for each in inputs_of((4, 3, 3), (4, 3, 3), options))
    call = call_by("triangular_solve", options)
    torch.testing.assert_close(torch.vmap(call)(A, B), call(A, B))
    torch.testing.assert_close(torch.vmap(call, (None, 0))(A[0], B), call(A[0], B))
    torch.testing.assert_close(torch.vmap(call, (0, None))(A, B[0]), call(A, B[0]))


@each_strategy
def test_a_zero_on_the_diagonal_gives_what_torch_gives(strategy):
    A, B = torch.zeros(2, 2), torch.ones(2, 1)
    torch.testing.assert_close(
        linalg.solve_triangular(A, B, upper=True, strategy=strategy),
        torch.linalg.solve_triangular(A, B, upper=True),
        equal_nan=True,
    )


@pytest.mark.parametrize("B", [torch.tensor(1.0), torch.ones(3), [1.0]], ids=["0-D", "1-D", "list"])
def test_what_is_no_batch_of_columns_is_refused_as_by_torch(B):
    A = torch.eye(3).repeat(2, 1, 1).requires_grad_()
    with pytest.raises((RuntimeError, TypeError)) as native:
        torch.linalg.solve_triangular(A, B, upper=True)
    with pytest.raises(native.type, match=r"solve_triangular"):
        linalg.solve_triangular(A, B, upper=True)
