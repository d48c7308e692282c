"""Derivatives on the fast path: of all orders, at deficient rank, by cotangents of any kind."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from strategies.linalg import inv, lstsq, lu, pinv, qr
from tests.autograd.plain_calls import (
    CALLS,
    RHS,
    SQUARE,
    TALL,
    each_operation,
    each_operation_with_tangents,
    matrix,
)

each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
each_batch = pytest.mark.parametrize("batch", [(), (3,)], ids=str)


@each_dtype
@each_batch
@each_operation
def test_second_derivatives_do_not_depend_on_whether_there_are_third_ones(
    operation, batch, dtype, language
):
    A = matrix(operation, batch, dtype).requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    loss = (result.abs().square() * (1 + result.real)).sum()
    (gradient,) = torch.autograd.grad(loss, A, create_graph=True)
    direction = torch.linspace(-1, 1, A.numel(), dtype=torch.float64).view(A.shape).to(dtype)
    found, expected = (
        torch.autograd.grad(gradient, A, direction, create_graph=is_kept, retain_graph=True)[0]
        for is_kept in (False, True)
    )
    torch.testing.assert_close(found, expected.detach())


@each_operation_with_tangents
def test_tangents_of_second_derivatives_do_not_depend_on_whether_there_are_third_ones(
    operation, language
):
    found = []
    for is_kept in (False, True):
        with forward_ad.dual_level():
            leaf = matrix(operation).requires_grad_()
            A = forward_ad.make_dual(
                leaf, torch.linspace(-1, 1, leaf.numel()).view_as(leaf).double()
            )
            loss = CALLS[operation](A, strategy="fused").pow(3).sum()
            (gradient,) = torch.autograd.grad(loss, A, create_graph=True)
            (second,) = torch.autograd.grad(gradient.sin().sum(), A, create_graph=is_kept)
            found.append(forward_ad.unpack_dual(second).tangent.detach())
    torch.testing.assert_close(*found)


@each_operation_with_tangents  # as in PyTorch, not of qr
def test_a_gradient_may_be_overwritten_before_it_is_differentiated(operation, language):
    A = matrix(operation).requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    (gradient,) = torch.autograd.grad(result.pow(3).sum(), A, create_graph=True)
    (expected,) = torch.autograd.grad(gradient.sum(), A, retain_graph=True)
    with torch.no_grad():
        gradient.zero_()
    torch.testing.assert_close(torch.autograd.grad(gradient.sum(), A)[0], expected)


@pytest.mark.parametrize(
    "along_random_directions", [True, pytest.param(False, marks=pytest.mark.slow)]
)
@each_operation
def test_derivatives_of_all_orders_are_right(operation, along_random_directions, language):
    options = {"fast_mode": along_random_directions, "check_batched_grad": True}
    for dtype in (torch.float64, torch.complex128):
        A = matrix(operation, dtype=dtype).requires_grad_()

        def call(A):
            return CALLS[operation](A, strategy="fused")

        assert gradcheck(call, A, check_forward_ad=True, **options)
        assert gradgradcheck(call, A, check_fwd_over_rev=True, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(7, 6, 3), (200, 6, 3), (5, 4, 4), (9, 4, 4)], ids=str)
def test_qr_of_graded_matrices_is_that_of_the_generic_path(shape, dtype, taken):
    A = torch.randn(*shape, dtype=dtype) * 10.0 ** torch.arange(0, -shape[-1], -1)
    A.requires_grad_()
    found, expected = (qr(A, strategy=name) for name in ("fused", "triangular_solve"))
    cotangents = [torch.randn_like(each) for each in expected]
    found, expected = (
        (*each, torch.autograd.grad(each, A, cotangents)[0] * A.detach())
        for each in (found, expected)
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert taken == [True, False]


def test_qr_of_dependent_columns_has_no_gradient(taken):
    A = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(torch.linalg.LinAlgError, match="full rank"):
        qr(A, strategy="fused").Q.sum().backward()
    assert taken == [True, "backward"]


@each_dtype
@each_batch
@pytest.mark.parametrize(("m", "n"), [(5, 4), (4, 5), (4, 4)])
def test_tangents_at_deficient_rank_are_along_the_matrices_of_that_rank(m, n, batch, dtype, taken):
    sides = (m, 2), (2, n), (m, 3)
    left, right, rhs = (torch.randn(*batch, *side, dtype=dtype) for side in sides)

    def along(t):
        A = (left + t * left.flip(-2)) @ (right - t * right.flip(-1))
        return torch.cat([pinv(A, strategy="fused"), lstsq(A, rhs, strategy="fused").solution], -1)

    step = 1e-5
    zero, one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = torch.func.jvp(along, (zero,), (one,))[1]
    due = (along(step) - along(-step)) / (2 * step)
    torch.testing.assert_close(found, due, rtol=1e-6, atol=1e-6)
    assert set(taken) == {True}


def test_residuals_are_differentiable(language):
    inputs = TALL.clone().requires_grad_(), RHS.clone().requires_grad_()

    def residuals(A, B):
        return lstsq(A, B, strategy="fused").residuals

    assert gradcheck(residuals, inputs, rtol=1e-6, atol=1e-8, check_forward_ad=True)
    assert gradgradcheck(residuals, inputs)


class _Constant(torch.autograd.Function):
    """The identity, without a gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, cotangent):
        return None


@pytest.mark.parametrize("strategy", ["fused", "triangular_solve"])
def test_without_any_cotangent_there_is_no_gradient(strategy, language):
    A = SQUARE.clone().requires_grad_()
    _Constant.apply(inv(A, strategy=strategy)).sum().backward()
    assert A.grad is None


def test_outputs_without_a_cotangent_count_as_zero(taken):
    A = SQUARE.to(torch.complex128).requires_grad_()
    _, L, U = lu(A, strategy="fused")
    of_L, of_U = L.sum().abs(), U.sum().abs()
    one, other, together = (
        torch.autograd.grad(each, A, retain_graph=True)[0] for each in (of_L, of_U, of_L + of_U)
    )
    torch.testing.assert_close(one + other, together)
    assert taken == [True]


@pytest.mark.parametrize("operation", [each for each in CALLS if "residuals" not in each])
def test_cotangents_far_from_one_are_scaled_and_keep_to_the_fast_path(operation, taken):
    A = matrix(operation).to(torch.float32).expand(4, -1, -1).clone().requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    G = torch.randn(result.shape[1:]).expand_as(result)
    scales = torch.tensor([2.0**-40, 1.0, 0.0, 2.0**30])
    scaled = G * scales.view(-1, *[1] * (G.ndim - 1))
    (expected,) = torch.autograd.grad(result, A, G, retain_graph=True)
    (found,) = torch.autograd.grad(result, A, scaled)
    torch.testing.assert_close(found, expected * scales.view(-1, 1, 1), rtol=1e-5, atol=0)
    assert taken == [True]


def test_a_cotangent_at_the_end_of_the_range_has_the_scaled_gradient(taken):
    A = SQUARE.clone().requires_grad_()
    X = inv(A, strategy="fused")
    G = torch.ones_like(X)
    (expected,) = torch.autograd.grad(X, A, G, retain_graph=True)
    (found,) = torch.autograd.grad(X, A, G * 2.0**1000)
    torch.testing.assert_close(found * 2.0**-1000, expected)
    assert taken[-1] == "backward"


def out_of_sequence(X):
    """The same numbers, the second of two batch dimensions first."""
    return X.transpose(0, 1).contiguous().transpose(0, 1)


@each_operation
def test_batches_and_cotangents_that_are_no_sequence_keep_to_the_fast_path(operation, taken):
    A = matrix(operation, (3,)).expand(2, -1, -1, -1).clone()
    A[1] += 1
    G = torch.randn(CALLS[operation](A, strategy="fused").shape, dtype=A.dtype)

    def computed(A, G):
        A = A.detach().requires_grad_()
        result = CALLS[operation](A, strategy="fused")
        return result, *torch.autograd.grad(result, A, G)

    expected = computed(A, G)
    torch.testing.assert_close(computed(out_of_sequence(A), G), expected)
    torch.testing.assert_close(computed(A, out_of_sequence(G)), expected)
    assert set(taken) == {True}


@pytest.mark.parametrize("pending", [torch.conj, lambda x: x.conj().imag])
@each_operation_with_tangents
def test_tangents_of_tangents_of_what_is_pending(operation, pending):
    A = matrix(operation, (), torch.complex128)
    direction = torch.ones_like(A)

    def second(resolve):
        def first(x):
            call = lambda x: CALLS[operation](resolve(pending(x)), strategy="fused")  # noqa: E731
            return torch.func.jvp(call, (x,), (direction,))[1]

        return torch.func.jvp(first, (A,), (direction,))[1]

    torch.testing.assert_close(second(lambda x: x), second(lambda x: x * 1))


def test_a_sum_of_no_residuals_has_no_tangent():
    A = torch.eye(2)
    with forward_ad.dual_level():
        residuals = lstsq(forward_ad.make_dual(A, A), A).residuals
        assert not forward_ad.unpack_dual(residuals.sum()).tangent.any()
