"""Second and third derivatives by operators, under the transforms of torch.func."""

import functools

import pytest
import torch

from strategies import linalg
from tests.autograd.plain_calls import loss_of, matrices
from tests.autograd.recorded import Recorded

func = torch.func

OF_SECOND_ORDER = {
    "inv": lambda functions, A, B: functions.inv(A),
    "solve": lambda functions, A, B: functions.solve(A, B),
    "det": lambda functions, A, B: functions.det(A),
    "slogdet": lambda functions, A, B: torch.stack(tuple(functions.slogdet(A))),
    "pinv": lambda functions, A, B: functions.pinv(A[..., :2]),
    "lstsq": lambda functions, A, B: functions.lstsq(A[..., :2], B).solution,
    "lu_factor_ex": lambda functions, A, B: functions.lu_factor(A).LU,
    "cholesky_ex": lambda functions, A, B: functions.cholesky(A @ A.mH),
}


def product(kind, loss, inputs, directions, places):
    """The derivative of the gradients by some inputs along directions of the first inputs."""
    count = len(directions)

    def moved(*first):
        return func.grad(loss, places)(*first, *inputs[count:])

    def along(*every):
        pairs = zip(func.grad(loss, tuple(range(count)))(*every), directions, strict=True)
        return sum((each.conj() * direction).sum().real for each, direction in pairs)

    def tangent(*every):
        return func.jvp(lambda *some: loss(*some, *every[count:]), every[:count], directions)[1]

    return {
        "backward_forward": lambda: func.jvp(moved, inputs[:count], directions)[1],
        "backward_backward": lambda: func.grad(along, places)(*inputs),
        "forward_backward": lambda: func.grad(tangent, places)(*inputs),
    }[kind]()


KINDS = "backward_forward", "backward_backward", "forward_backward"


@pytest.mark.parametrize(("name", "call"), OF_SECOND_ORDER.items())
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "places"), [(2, (0, 1)), (1, (0, 1)), (1, (0,))])
def test_second_derivatives_are_by_operators(count, places, kind, batch, dtype, name, call):
    A = torch.randn(*batch, 3, 3, dtype=dtype) + 3 * torch.eye(3, dtype=dtype)
    B = torch.randn(*batch, 3, 3, dtype=dtype)

    def found_by(functions, kind):
        def loss(A, B):
            return call(functions, A, B).abs().square().sin().sum()

        return product(kind, loss, (A, B), (B.sin(), A.cos())[:count], places)

    with Recorded() as recorded:
        found = found_by(linalg, kind)
    # Not of PyTorch's tangents, whose gradients are other ones (docs/upstream.md).
    torch.testing.assert_close(found, found_by(torch.linalg, "backward_forward"))
    if kind == "backward_forward":
        assert recorded.count(f"{name}_forward") == 1
    assert recorded.count(f"{name}_{kind}") == recorded.count(name) == 1


def test_no_operator_has_a_matrix_for_each_direction_and_cotangent():
    with Recorded() as recorded:
        func.jacrev(func.jacfwd(linalg.inv))(matrices()[0])
    assert not recorded.count("inv_forward_backward")


def product_in_eager_mode(loss, A, D):
    leaf = A.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
    return torch.autograd.grad((gradient * D).sum(), leaf, create_graph=True)[0]


@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("kind", KINDS)
def test_third_derivatives_by_what_a_loss_closes_over(kind, call):
    (A, _, B, _), D = matrices(), torch.randn(3, 3, dtype=torch.float64)

    def product_by_operators(loss, A, D):
        return product(kind, loss, (A,), (D,), (0,))[0]

    def derivatives(product, functions):
        scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        found = product(lambda A: (scale**2 * call(functions, A, B)).sin().sum(), A, D)
        (first,) = torch.autograd.grad(found.square().sum(), scale, create_graph=True)
        return first, torch.autograd.grad(first, scale)[0]

    due = derivatives(product_in_eager_mode, torch.linalg)
    torch.testing.assert_close(derivatives(product_by_operators, linalg), due)


AROUND = {
    "grad": lambda loss, A, D: (func.grad(loss)(A) * D).sum(),
    "jvp": lambda loss, A, D: func.jvp(loss, (A,), (D,))[1],
    "jacfwd": lambda loss, A, D: (func.jacfwd(loss)(A) * D).sum(),
}


@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("transform", AROUND.values(), ids=AROUND)
def test_eager_mode_differentiates_transforms_to_third_order(transform, call):
    (A, _, B, _), D = matrices(), torch.randn(3, 3, dtype=torch.float64)

    def in_eager_mode(loss, A, D):
        return (torch.autograd.grad(loss(A), A, create_graph=True)[0] * D).sum()

    def gradients(transform, functions):
        leaf = A.clone().requires_grad_()
        value = transform(loss_of(lambda A: call(functions, A, B)), leaf, D)
        for _ in range(2):
            (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
            value = gradient.square().sum()
            yield gradient

    due = [*gradients(in_eager_mode, torch.linalg)]
    torch.testing.assert_close([*gradients(transform, linalg)], due)


WRITTEN = {
    "gradient": lambda loss, A, D: func.grad(loss)(A),
    "tangent": lambda loss, A, D: func.jvp(loss, (A,), (D,))[1][None],
    "gradients of samples": lambda loss, A, D: func.vmap(func.grad(loss))(torch.stack([A, 2 * A])),
}


@pytest.mark.parametrize("is_eager", [True, False])
@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("transform", WRITTEN.values(), ids=WRITTEN)
def test_derivatives_may_be_written_into(transform, call, is_eager):
    (A, _, B, _), D = matrices(), torch.randn(3, 3, dtype=torch.float64)

    def value(A, is_in_place):
        found = transform(loss_of(lambda A: call(linalg, A, B)), A, D)
        return (found.mul_(2) if is_in_place else 2 * found).sin().sum()

    def gradient(is_in_place):
        if not is_eager:
            return func.grad(value)(A, is_in_place)
        leaf = A.clone().requires_grad_()
        return torch.autograd.grad(value(leaf, is_in_place), leaf)[0]

    torch.testing.assert_close(gradient(is_in_place=True), gradient(is_in_place=False))


MAPPED = {
    "Hessian": lambda vmap, f, A, B: func.hessian(loss_of(f), (0, 1))(A, B),
    "Hessians": lambda vmap, f, A, B: vmap(func.hessian(loss_of(f)), (1, 1))(
        torch.stack([A, 1.1 * A], 1), torch.stack([B, B], 1)
    ),
    "Hessian of one for many": lambda vmap, f, A, B: vmap(func.hessian(loss_of(f), 1), (None, 0))(
        A, torch.stack([B, 2 * B])
    ),
    "products along many": lambda vmap, f, A, B: vmap(
        lambda dA, dB: func.jvp(func.grad(loss_of(f), (0, 1)), (A, B), (dA, dB))[1][0], (0, 0)
    )(torch.stack([A.sin(), A.cos()]), torch.stack([B.cos(), B])),
    "derivative of Jacobian": lambda vmap, f, A, B: func.jacfwd(func.jacrev(f))(A, B),
    "Jacobians of Jacobians": lambda vmap, f, A, B: vmap(func.jacrev(func.jacrev(f)), (0, 0))(
        torch.stack([A, 1.1 * A]), torch.stack([B, B])
    ),
    "Jacobians, mapped twice": lambda vmap, f, A, B: vmap(
        lambda s: vmap(lambda t: func.jacrev(f)(s * t * A, B), (0,))(torch.ones(2) + 0.1), (0,)
    )(torch.tensor([1.0, 1.1, 0.9])),
}


def one_by_one(function, in_dims):
    """`vmap` as a loop, as PyTorch's of `solve` and `det` reads other matrices' pivots in Hessians."""

    def stacked(*inputs):
        count = inputs[-1].shape[in_dims[-1]]
        every = [
            [each] * count if dim is None else each.unbind(dim)
            for each, dim in zip(inputs, in_dims, strict=True)
        ]
        return torch.stack([*map(function, *every)])

    return stacked


@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize("mapped", MAPPED.values(), ids=MAPPED)
def test_second_derivatives_over_directions_and_cotangents(mapped, batch, call):
    A, B = matrices(*batch)[0], matrices(*batch)[0]
    found = mapped(torch.vmap, functools.partial(call, linalg), A, B)
    due = mapped(one_by_one, functools.partial(call, torch.linalg), A, B)
    torch.testing.assert_close(found, due)


@pytest.mark.parametrize(("name", "call"), OF_SECOND_ORDER.items())
def test_a_hessian_is_of_one_matrix(name, call):
    A, B = matrices()[0], matrices()[0]
    with Recorded() as recorded:
        func.hessian(lambda A: call(linalg, A, B).sin().sum())(A)
    assert recorded.count(name) == 1


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("tolerance", ["rtol", "atol"])
def test_second_derivatives_at_a_rank_that_a_tolerance_truncates(tolerance, n):
    U, V = (torch.linalg.qr(each).Q for each in matrices(2)[0][:, :n, :n])
    A = U @ torch.diag(torch.tensor([1, 1e-2, 8e-3], dtype=U.dtype)[:n]) @ V
    direction = torch.ones_like(A).triu()

    def product(strategy):
        truncated = functools.partial(linalg.pinv, **{tolerance: 0.1}, strategy=strategy)
        gradient = func.grad(lambda A: truncated(A).sin().square().sum())
        return func.jvp(gradient, (A,), (direction,))[1]

    torch.testing.assert_close(product("auto"), product("svd_truncated_pinv"))


@pytest.mark.parametrize("strategy", ["auto", "fused", "svd_truncated_pinv"])
@pytest.mark.parametrize("name", ["pinv", "lstsq"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_second_derivatives_at_a_deficient_rank(shape, name, strategy):
    m, n = shape
    U, dU = torch.randn(2, m, 2, dtype=torch.float64)
    V, dV = torch.randn(2, 2, n, dtype=torch.float64)
    B = torch.randn(m, 2, dtype=torch.float64)

    def loss(A):
        if name == "pinv":
            return linalg.pinv(A, strategy=strategy).sin().sum()
        return linalg.lstsq(A, B, strategy=strategy).solution.sin().sum()

    def gradient(t):  # along a curve of matrices of rank two
        return func.grad(loss)((U + t * dU) @ (V + t * dV))

    tangent = dU @ V + U @ dV
    found = func.jvp(func.grad(loss), (U @ V,), (tangent,))[1]
    (mapped,) = torch.vmap(lambda D: func.jvp(func.grad(loss), (U @ V,), (D,))[1])(tangent[None])
    differences = (
        8 * (gradient(1e-3) - gradient(-1e-3)) - gradient(2e-3) + gradient(-2e-3)
    ) / 12e-3
    torch.testing.assert_close(found, differences, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(mapped, found)
