"""Triangular systems: values, derivatives of all orders, and only one triangle read or given back."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

DTYPES = [torch.float64, torch.complex128, torch.float32, torch.complex64]
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
    generator = torch.Generator().manual_seed(0)
    A, B = (torch.randn(*shape, dtype=dtype, generator=generator) for shape in (A_shape, B_shape))
    A = A / max(A.shape[-1], 1) + torch.eye(A.shape[-1])
    return A.requires_grad_(), (B if options["left"] else B.mT.contiguous()).requires_grad_()


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
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, options, dtype):
    for shapes in BATCHES:
        A, B = inputs_of(*shapes, options, dtype)
        found = []
        for function, by in (
            (torch.linalg.solve_triangular, {}),
            (linalg.solve_triangular, {"strategy": strategy}),
        ):
            X = function(A, B, **options, **by)
            found.append((X, *torch.autograd.grad(X.abs().square().sum(), (A, B))))
        tolerance = torch.finfo(dtype).eps ** 0.5
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@each_option
@pytest.mark.parametrize("strategy", ["triangular_solve", "explicit_inverse"])
@pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.complex128, marks=pytest.mark.slow)], ids=str
)
def test_derivatives_of_both_orders_in_both_modes(strategy, options, dtype):
    for shapes in [((3, 3), (3, 3)), ((2, 1, 3, 3), (2, 3, 3))]:
        A, B = inputs_of(*shapes, options, dtype)

        def call(A, B):
            return linalg.solve_triangular(A, B, **options, strategy=strategy)

        assert gradcheck(
            call, (A, B), fast_mode=True, check_forward_ad=True, check_batched_grad=True
        )
        assert gradgradcheck(call, (A, B), fast_mode=True, check_fwd_over_rev=True, atol=1e-4)


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

    def call(A):
        return linalg.solve_triangular(A, B, **options, strategy=strategy).square().sum()

    leaves = [A.clone().requires_grad_() for A in (noisy, triangle)]
    gradients = [torch.autograd.grad(call(leaf), leaf)[0] for leaf in leaves]
    torch.testing.assert_close(*gradients)
    unread = triangle == 0
    if options["unitriangular"]:
        unread.diagonal().fill_(True)
    assert not gradients[0][unread].any()


@each_option
def test_vmap_over_any_of_its_inputs(options):
    A, B = (each.detach() for each in inputs_of((4, 3, 3), (4, 3, 3), options))

    def call(A, B):
        return linalg.solve_triangular(A, B, **options, strategy="triangular_solve")

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
