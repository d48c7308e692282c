"""Every use of a factor in every mode of differentiation, beside torch.linalg and finite differences."""

import pytest
import torch
from comparison import drawn
from torch.autograd import gradcheck, gradgradcheck

import strategies
from tests.factorization.cases import CASES, DTYPES, SHAPES, of_factor, operands
from tests.factors.cofactors import adjugate, determinant, entries

close = torch.testing.assert_close


def along(kind, A):
    """What finite differences may move at the rank that the kind has, and the matrix that is made of it."""
    if kind != "svd":
        return (A,), lambda A: A
    left, right = (drawn(m, 2, dtype=A.dtype, seed=5 + i) for i, m in enumerate(A.shape))
    return (left, right), lambda left, right: left @ right.mT


QUICK = {("lu", "solve"), ("lu", "det"), ("spd", "inv_quad_logdet")}
QUICK |= {("qr", "adjoint"), ("svd", "lstsq")}
"""Uses of which others are made, in complex numbers, of which real ones are some."""


def quick(case, dtype):
    return () if case in QUICK and dtype.is_complex else pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "use", "dtype"),
    [pytest.param(*case, each, marks=quick(case, each)) for case in CASES for each in DTYPES],
)
def test_derivatives_of_two_orders_are_those_of_finite_differences(kind, use, dtype):
    A, *others = operands(kind, dtype)
    parts, made = along(kind, A)
    inputs = tuple(each.requires_grad_() for each in (*parts, *others))
    function = of_factor(kind, use)

    def by_parts(*arguments):
        return function(made(*arguments[:-2]), *arguments[-2:])

    assert gradcheck(by_parts, inputs, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(by_parts, inputs, fast_mode=True, check_fwd_over_rev=True)


@pytest.mark.parametrize(
    "order",
    ["jacrev jacrev", "jacfwd jacrev", "jacrev jacfwd", "jacfwd jacfwd", "jacrev jacrev jacrev"],
)
@pytest.mark.parametrize("use", ["adjoint", "inv_quad_logdet", "det"])
@pytest.mark.parametrize("kind", ["lu", "spd"])
def test_transforms_nest(kind, use, order):
    A, B, C = operands(kind)
    A, B, C = A[:2, :2], B[:2, :1], C[:2, :1]
    # Products of entries in the place of torch.linalg, whose derivatives PyTorch has wrong here.
    functions = [of_factor(kind, use), by_cramer(kind, use)]
    for name in order.split():
        functions = map(getattr(torch.func, name), functions)
    found, expected = (each(A, B, C) for each in functions)
    close(found, expected)


def by_cramer(kind, use):
    def function(A, B, C):
        if kind == "spd":
            A = (A + A.mT) / 2
        det = determinant(entries(A))
        inverse = adjugate(A) / det
        found = {
            "adjoint": inverse.mT @ C,
            "det": det,
            "inv_quad_logdet": (B * (inverse @ B)).sum() + det.abs().log(),
        }[use]
        return (found.sin() + found.square() / 3).sum()

    return function


@pytest.mark.parametrize("kind", SHAPES)
def test_a_batch_under_vmap_is_a_batch(kind):
    A, B, C = operands(kind, batch=(3,))
    for use in ("lstsq", "adjoint"):
        function = of_factor(kind, use)
        gradients = torch.func.vmap(torch.func.grad(function, argnums=(0, 1, 2)))(A, B, C)
        for i in range(3):
            one = torch.func.grad(function, argnums=(0, 1, 2))(A[i], B[i], C[i])
            close([each[i] for each in gradients], list(one))


@pytest.mark.parametrize("kind", SHAPES)
def test_right_hand_sides_alone_may_be_mapped(kind):
    A, B, _ = operands(kind)
    f = strategies.factor(A, kind)
    stacked = torch.stack((B, 2 * B, -B), 1)
    mapped = torch.func.vmap(f.lstsq, in_dims=1, out_dims=1)(stacked)
    close(mapped, torch.stack([f.lstsq(stacked[:, i]) for i in range(3)], 1))


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("kind", SHAPES)
def test_jacobians_by_one_backward_or_many(kind, vectorize):
    A, B, _ = operands(kind)
    f = strategies.factor(A.requires_grad_(), kind)
    X = f.lstsq(B)
    eye = torch.eye(X.numel(), dtype=X.dtype).reshape(-1, *X.shape)
    rows = (
        torch.autograd.grad(X, A, eye, is_grads_batched=True)[0]
        if vectorize
        else torch.stack([torch.autograd.grad(X, A, each, retain_graph=True)[0] for each in eye])
    )
    expected = torch.func.jacrev(lambda A: strategies.linalg.lstsq(A, B).solution)(A.detach())
    if kind == "spd":
        expected = (expected + expected.mT) / 2
    close(rows.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    "kind", ["spd", *(pytest.param(each, marks=pytest.mark.slow) for each in ("lu", "qr", "svd"))]
)
def test_a_compiled_function_is_one_graph_with_the_gradients_of_eager_mode(kind):
    use = "inv_quad_logdet" if kind in ("lu", "spd") else "adjoint"
    function = of_factor(kind, use)
    gradients = []
    for each in (function, torch.compile(function, backend="aot_eager", fullgraph=True)):
        inputs = [operand.requires_grad_() for operand in operands(kind)]
        each(*inputs).backward()
        gradients.append([operand.grad for operand in inputs if operand.grad is not None])
    close(*gradients)


@pytest.mark.parametrize("use", ["solve", "det"])
def test_rows_of_a_hessian_may_be_computed_together(use):
    A, *others = operands("lu", torch.float64)
    function = of_factor("lu", use)

    def loss(A):
        return function(A, *others).sin().sum()

    hessian = torch.autograd.functional.hessian
    close(hessian(loss, A, vectorize=True), hessian(loss, A))
