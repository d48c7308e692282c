"""Triangular systems, and systems by LU factors: values, derivatives of all orders, and what is read."""

import functools
import itertools

import pytest
import torch
from comparison import drawn, require_alike, require_derivatives, with_gradients
from operations import ALL_DTYPES, each_dtype
from torch.autograd import gradcheck

import strategies
from strategies import linalg

TRIANGULAR = [
    {"upper": upper, "left": left, "unitriangular": unit}
    for upper, left, unit in itertools.product([True, False], repeat=3)
]
BY_LU = [
    {"left": left, "adjoint": adjoint}
    for left, adjoint in itertools.product([True, False], [False, True])
]


def each_option(*names):
    forms = {"solve_triangular": TRIANGULAR, "lu_solve": BY_LU}
    return pytest.mark.parametrize(
        ("name", "options"),
        [
            pytest.param(
                name, options, id="-".join([name, *(key for key in options if options[key])])
            )
            for name in names or forms
            for options in forms[name]
        ],
    )


# Those whose own way with triangles is not another's.
TRIANGLES = {
    type(strategies.get(name)).factor_triangular: name for name in reversed(strategies.available())
}
each_strategy = pytest.mark.parametrize("strategy", sorted({*TRIANGLES.values(), "fused"}))


def inputs_of(name, options, A_shape, B_shape, dtype=torch.float64):
    """A triangle, or LU factors with pivots, and right-hand sides."""
    A, B = drawn(*A_shape, dtype=dtype), drawn(*B_shape, dtype=dtype, seed=1)
    B = (B if options.get("left", True) else B.mT.contiguous()).requires_grad_()
    if name == "solve_triangular":
        return (A / max(A.shape[-1], 1) + torch.eye(A.shape[-1])).requires_grad_(), B
    LU, pivots = torch.linalg.lu_factor(A)
    return LU.requires_grad_(), pivots, B


def call_by(strategy, name, options):
    return functools.partial(getattr(linalg, name), **options, strategy=strategy)


def call_of_torch(name, options):
    return functools.partial(getattr(torch.linalg, name), **options)


BATCHES = [
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3, 1)),
    ((3, 3), (4, 2, 3, 2)),
    ((2, 1, 3, 3), (5, 3, 2)),
    ((2, 3, 3), (3, 2)),
    ((0, 3, 3), (0, 3, 2)),
    ((0, 0), (0, 2)),
    ((3, 3), (3, 0)),
]
MANY = [((8, 8), (8, 40)), ((2, 3, 17, 17), (2, 3, 17, 6)), ((32, 32), (32, 33))]
LARGE = [
    ((70, 70), (70, 71)),
    ((40, 40), (40, 3)),
    ((60, 60), (60, 9)),
    ((150, 150), (150, 6)),
    ((300, 300), (300, 2)),
]


@each_option()
@each_strategy
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(strategy, name, options, dtype):
    tolerances = dict.fromkeys(("rtol", "atol"), torch.finfo(dtype).eps ** 0.5)
    # Random matrices of many rows are too ill-conditioned for single precision.
    has_large = name == "solve_triangular" or torch.finfo(dtype).eps < 1e-9
    for shapes in BATCHES + MANY + LARGE * has_large:
        inputs = inputs_of(name, options, *shapes, dtype)
        call = call_by(strategy, name, options)
        require_alike(call, call_of_torch(name, options), *inputs, **tolerances)


@each_option()
@each_strategy
def test_a_batch_in_another_order(strategy, name, options):
    inputs = inputs_of(name, options, (2, 3, 5, 5), (2, 3, 5, 4))
    swapped = [each.detach().transpose(0, 1).requires_grad_(each.requires_grad) for each in inputs]
    require_alike(call_by(strategy, name, options), call_of_torch(name, options), *swapped)


@each_option("lu_solve")
@pytest.mark.parametrize("size", [127, 129, 300])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_several_blocks(size, batch, name, options):
    inputs = inputs_of(name, options, *[(*batch, size, size)] * 2)
    calls = call_by("triangular_solve", name, options), call_of_torch(name, options)
    for one, other in zip(*(with_gradients(each, *inputs) for each in calls), strict=True):
        assert (one - other).norm() < 1e-9 * other.norm()


@each_option()
@pytest.mark.parametrize("strategy", ["triangular_solve", "explicit_inverse", "fused"])
@each_dtype
def test_derivatives_of_both_orders_in_both_modes(strategy, name, options, dtype):
    for shapes in [((3, 3), (3, 3)), ((2, 1, 3, 3), (2, 3, 3)), ((4, 2, 2), (4, 2, 1))]:
        inputs = inputs_of(name, options, *shapes, dtype)
        require_derivatives(call_by(strategy, name, options), inputs)


@each_option()
def test_vmap_over_any_of_its_inputs(name, options):
    *A, B = (each.detach() for each in inputs_of(name, options, (4, 3, 3), (4, 3, 3)))
    call = call_by("triangular_solve", name, options)
    gradient = torch.func.grad(lambda *inputs: call(*inputs).sum())
    one = [each[0] for each in A]
    for function in (call, gradient):
        for in_dims, inputs in (
            ((0,) * len(A) + (0,), (*A, B)),
            ((None,) * len(A) + (0,), (*one, B)),
            ((0,) * len(A) + (None,), (*A, B[0])),
        ):
            alone = [
                function(*(x if d is None else x[i] for x, d in zip(inputs, in_dims, strict=True)))
                for i in range(4)
            ]
            torch.testing.assert_close(torch.vmap(function, in_dims)(*inputs), torch.stack(alone))


@each_option()
@each_strategy
def test_a_zero_on_the_diagonal_gives_what_torch_gives(strategy, name, options):
    A, *rest = (each.detach() for each in inputs_of(name, options, (2, 3, 3), (2, 3, 1)))
    A[0], A[1, 1, 1] = 0, 0
    calls = call_by(strategy, name, options), call_of_torch(name, options)
    torch.testing.assert_close(*(each(A, *rest) for each in calls), equal_nan=True)


@each_option()
@pytest.mark.parametrize("wanted", [0, -1])
def test_the_gradient_of_one_input_only(wanted, name, options):
    inputs = [each.detach() for each in inputs_of(name, options, (3, 3), (3, 2))]
    inputs[wanted].requires_grad_()
    require_alike(call_by("triangular_solve", name, options), call_of_torch(name, options), *inputs)


@pytest.mark.parametrize("pivot", [-(2**30), 0, 6, 2**30])
@pytest.mark.parametrize("adjoint", [False, True])
def test_pivots_that_have_changed_unseen_are_refused(pivot, adjoint):
    LU, pivots, B = inputs_of("lu_solve", {}, (3, 3), (3, 2))
    X = linalg.lu_solve(LU, pivots, B, adjoint=adjoint)
    pivots.numpy()[1] = pivot
    with pytest.raises(RuntimeError, match="pivots must be from 1 to the rows of LU"):
        X.sum().backward()


@each_option("lu_solve")
@each_dtype
def test_jacobians_by_mapped_tangents(name, options, dtype):
    *A, B = inputs_of(name, options, (3, 3), (3, 2), dtype)
    found, due = (
        torch.autograd.functional.jacobian(
            functools.partial(call, *A), B, vectorize=True, strategy="forward-mode"
        )
        for call in (call_by("auto", name, options), call_of_torch(name, options))
    )
    torch.testing.assert_close(found, due)


@each_option()
def test_right_hand_sides_may_be_overwritten(name, options):
    *A, B = inputs_of(name, options, (3, 3), (3, 2))
    call = call_by("auto", name, options)
    (due,) = torch.autograd.grad(call(*A, B).sum(), A[0])
    copy = B.detach().clone()
    result = call(*A, copy)
    copy.zero_()
    torch.testing.assert_close(torch.autograd.grad(result.sum(), A[0]), (due,))


@each_option("solve_triangular")
@each_strategy
def test_what_stands_for_nothing_is_not_read(strategy, name, options):
    A, B = (each.detach() for each in inputs_of(name, options, (4, 4), (4, 2)))
    triangle = A.triu() if options["upper"] else A.tril()
    unread = triangle == 0
    if options["unitriangular"]:
        triangle.diagonal().fill_(1)
        unread.diagonal().fill_(True)
    noisy = torch.where(unread, torch.nan, triangle)
    call = call_by(strategy, name, options)
    found, due = (with_gradients(call, each.requires_grad_(), B) for each in (noisy, triangle))
    torch.testing.assert_close(found, due)
    assert not found[1][unread].any()


def test_it_goes_through_a_factorization_and_back():
    inputs = drawn(4, 4).requires_grad_(), drawn(4, 2, seed=1).requires_grad_()
    assert gradcheck(
        lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B, strategy="triangular_solve"), inputs
    )
