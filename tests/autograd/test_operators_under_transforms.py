"""Operators under the transforms of torch.func: computed once for all samples and cotangents."""

import functools

import pytest
import torch
from operations import compiled
from torch import Tensor

from strategies import linalg
from tests.autograd.recorded import Recorded

func = torch.func
OPERATORS = torch.ops.backward_strategies


def system(*batch: int) -> tuple[Tensor, Tensor]:
    """Matrices and right-hand sides."""
    A = torch.randn(*batch, 3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    return A, torch.randn(*batch, 3, 2, dtype=torch.float64)


def loss_of(function):
    return lambda *inputs: function(*inputs).sin().square().sum()


@pytest.mark.parametrize("strategy", ["fused", "qr_pinv"])
@pytest.mark.parametrize("count", [16, 4, 0])
@pytest.mark.parametrize("is_expanded", [True, False])
def test_a_gradient_is_mapped_over_cotangents_alone(is_expanded, count, strategy):
    A = system()[0]
    cotangents = torch.randn(count, 3, 3, dtype=A.dtype)
    X, *saved = OPERATORS.inv(A, strategy)
    of_many = [each.expand(count, 3, 3) if is_expanded else each for each in (A, X)]
    for _ in range(2):  # a second call finds what the first has planned
        (found,) = OPERATORS.inv_backward([of_many[0], cotangents], of_many[1], *saved, [True])
        torch.testing.assert_close(found, -X.mT @ cotangents @ X.mT)


PIVOTS = torch.arange(1, 4, dtype=torch.int32)
WITHOUT_OPERATOR = {
    "linalg_eig": lambda functions, A, B: functions.eig(A).eigenvalues.abs(),
    "linalg_qr": lambda functions, A, B: functions.qr(A[:2]).R,
    "linalg_lu_solve": lambda functions, A, B: functions.lu_solve(A, PIVOTS, B),
    "linalg_solve_triangular": lambda functions, A, B: functions.solve_triangular(A, B, upper=True),
    "linalg_lstsq": lambda functions, A, B: functions.lstsq(A, B, driver="gels").solution,
}


@pytest.mark.parametrize(("name", "call"), WITHOUT_OPERATOR.items())
@pytest.mark.parametrize(
    "transform",
    [
        lambda call: func.vmap(func.grad(loss_of(call))),
        lambda call: func.jacrev(lambda A, B: call(A[0], B[0])),
    ],
    ids=["vmap(grad)", "jacrev"],
)
def test_what_has_no_fast_path_is_computed_once_for_all_samples_and_cotangents(
    transform, name, call
):
    A, B = system(8)
    with Recorded() as due:
        expected = transform(lambda *inputs: call(torch.linalg, *inputs))(A, B)
    with Recorded() as recorded:
        found = transform(lambda *inputs: call(linalg, *inputs))(A, B)

    torch.testing.assert_close(found, expected)
    assert recorded.count(name) == due.count(name) <= 2


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "inv_ex": lambda A, B: linalg.inv_ex(A).inverse,
        "solve_ex": lambda A, B: linalg.solve_ex(A, B).result,
        "solve": lambda A, B: linalg.solve_ex(A, B.mT, left=False).result,
    }.items(),
)
def test_what_reports_is_computed_once_by_an_operator(name, call):
    A, B = system(8)
    with Recorded() as recorded:
        func.vmap(func.grad(loss_of(call)))(A, B)
    assert recorded.count(name) == recorded.count(f"{name}_backward") == 1
    assert not recorded.count("linalg_lu_factor_ex")


@pytest.mark.parametrize(
    "batches",
    [((), (5,)), ((), (0,)), ((1,), (5,)), ((5,), ()), ((3, 1), (5,)), ((2, 1, 5), (3, 1))],
    ids=str,
)
@pytest.mark.parametrize(
    ("name", "call"),
    {
        "solve": lambda solve, _, A, B: solve(A, B),
        "solve from the right": lambda solve, _, A, B: solve(A.mT, B.mT, left=False),
        "cholesky_solve": lambda _, cholesky_solve, A, B: cholesky_solve(B, A.tril()),
    }.items(),
)
def test_broadcast_right_hand_sides_are_columns_of_an_operator(name, call, batches):
    of_A, of_B = batches
    A, B = system(*of_A)[0], system(*of_B)[1]
    function = functools.partial(call, linalg.solve, linalg.cholesky_solve)
    expected = functools.partial(call, torch.linalg.solve, torch.cholesky_solve)
    with Recorded() as recorded:
        found = func.grad(loss_of(function), (0, 1))(A, B)
    torch.testing.assert_close(found, func.grad(loss_of(expected), (0, 1))(A, B))
    torch.testing.assert_close(compiled(function)(A, B), expected(A, B))
    operator, _, _ = name.partition(" ")
    (operands,) = (arguments for called, arguments in recorded.calls if called == operator)
    assert operands[0].shape[:-2] == operands[1].shape[:-2] == A.shape[:-2]


def test_a_jacobian_is_of_one_matrix_and_many_cotangents():
    A = system()[0]
    with Recorded() as recorded:
        found = func.jacrev(linalg.inv)(A)
    torch.testing.assert_close(found, func.jacrev(torch.linalg.inv)(A))
    (operands,) = (arguments[0] for name, arguments in recorded.calls if name == "inv_backward")
    assert [each.shape for each in operands] == [(3, 3), (9, 3, 3)]


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("part", [0, 1])
def test_a_jacobian_of_one_output_of_two(part, is_complex):
    def output(A, by):
        found = by.slogdet(torch.complex(A, A.mT) if is_complex else A)[part]
        return torch.stack([found.real, found.abs()])

    A = system()[0]
    found, due = (
        func.jacrev(functools.partial(output, by=functions))(A)
        for functions in (linalg, torch.linalg)
    )
    torch.testing.assert_close(found, due)


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


def products(kinds, call, functions, A, B):
    """The products of the Hessian with B, of both inputs or the first alone."""
    inputs, directions = ((A, B), (B.sin(), A.cos())) if kinds[0] == "both" else ((A,), (B,))
    places = tuple(range(len(inputs)))

    def loss(*some):
        return call(functions, *(*some, B)[:2]).abs().square().sin().sum()

    def along(*some):
        pairs = zip(func.grad(loss, places)(*some), directions, strict=True)
        return sum((each.conj() * direction).sum().real for each, direction in pairs)

    return {
        "backward_forward": lambda: func.jvp(func.grad(loss, places), inputs, directions)[1],
        "backward_backward": lambda: func.grad(along, places)(*inputs),
        "forward_backward": lambda: func.grad(
            lambda *some: func.jvp(loss, some, directions)[1], places
        )(*inputs),
    }[kinds[1]]()


@pytest.mark.parametrize(("name", "call"), OF_SECOND_ORDER.items())
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("kind", ["backward_forward", "backward_backward", "forward_backward"])
@pytest.mark.parametrize("inputs", ["both", "first"])
def test_second_derivatives_are_by_operators(inputs, kind, batch, dtype, name, call):
    A = torch.randn(*batch, 3, 3, dtype=dtype) + 3 * torch.eye(3, dtype=dtype)
    B = torch.randn(*batch, 3, 3, dtype=dtype)
    with Recorded() as recorded:
        found = products((inputs, kind), call, linalg, A, B)
    # Not of PyTorch's tangents, whose gradients are other ones (docs/upstream.md).
    due = products((inputs, "backward_forward"), call, torch.linalg, A, B)
    torch.testing.assert_close(found, due)
    assert recorded.count(f"{name}_{kind}") == recorded.count(name) == 1


def test_no_operator_has_a_matrix_for_each_direction_and_cotangent():
    with Recorded() as recorded:
        func.jacrev(func.jacfwd(linalg.inv))(system()[0])
    assert not recorded.count("inv_forward_backward")


PRODUCTS = {
    "forward over reverse": lambda loss, A, D: func.jvp(func.grad(loss), (A,), (D,))[1],
    "reverse over reverse": lambda loss, A, D: func.grad(lambda A: (func.grad(loss)(A) * D).sum())(
        A
    ),
    "reverse over forward": lambda loss, A, D: func.grad(lambda A: func.jvp(loss, (A,), (D,))[1])(
        A
    ),
}


def product_in_eager_mode(loss, A, D):
    leaf = A.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
    return torch.autograd.grad((gradient * D).sum(), leaf, create_graph=True)[0]


@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_third_derivatives_by_what_a_loss_closes_over(product, call):
    (A, B), D = system(), torch.randn(3, 3, dtype=torch.float64)

    def derivatives(product, functions):
        scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        found = product(lambda A: (scale**2 * call(functions, A, B)).sin().sum(), A, D)
        (first,) = torch.autograd.grad(found.square().sum(), scale, create_graph=True)
        return first, torch.autograd.grad(first, scale)[0]

    due = derivatives(product_in_eager_mode, torch.linalg)
    torch.testing.assert_close(derivatives(product, linalg), due)


AROUND = {
    "grad": lambda loss, A, D: (func.grad(loss)(A) * D).sum(),
    "jvp": lambda loss, A, D: func.jvp(loss, (A,), (D,))[1],
    "jacfwd": lambda loss, A, D: (func.jacfwd(loss)(A) * D).sum(),
}


@pytest.mark.parametrize("call", OF_SECOND_ORDER.values(), ids=OF_SECOND_ORDER)
@pytest.mark.parametrize("transform", AROUND.values(), ids=AROUND)
def test_eager_mode_differentiates_transforms_to_third_order(transform, call):
    (A, B), D = system(), torch.randn(3, 3, dtype=torch.float64)

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
    (A, B), D = system(), torch.randn(3, 3, dtype=torch.float64)

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
    A, B = system(*batch)[0], system(*batch)[0]
    found = mapped(torch.vmap, functools.partial(call, linalg), A, B)
    due = mapped(one_by_one, functools.partial(call, torch.linalg), A, B)
    torch.testing.assert_close(found, due)


@pytest.mark.parametrize(("name", "call"), OF_SECOND_ORDER.items())
def test_a_hessian_is_of_one_matrix(name, call):
    A, B = system()[0], system()[0]
    with Recorded() as recorded:
        func.hessian(lambda A: call(linalg, A, B).sin().sum())(A)
    assert recorded.count(name) == 1


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("name", ["inv", "det", "pinv"])
def test_jacobians_of_as_many_matrices_as_there_are_cotangents(name, size):
    A = system(size)[0]
    found, due = (func.vmap(func.jacrev(getattr(each, name)))(A) for each in (linalg, torch.linalg))
    torch.testing.assert_close(found, due)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: func.grad(loss_of(f)),
        func.jacrev,
        func.jacfwd,
        lambda f: func.hessian(loss_of(f)),
        lambda f: func.grad(lambda A, B: func.grad(loss_of(f))(A, B).sum()),
        lambda f: lambda A, B: func.jvp(f, (A, B), (B, A))[1],
        lambda f: func.vmap(f, in_dims=(0, None)),
        lambda f: func.vmap(func.grad(loss_of(f)), in_dims=(None, 0)),
    ],
    ids=["grad", "jacrev", "jacfwd", "hessian", "grad-grad", "jvp", "vmap", "vmap-grad"],
)
def test_transforms_inside_a_compiled_function(transform):
    A, B = system(2)[0], system(2)[0]
    transformed = transform(functools.partial(linalg.solve, strategy="qr_pinv"))
    torch.testing.assert_close(compiled(transformed)(A, B), transformed(A, B))


@pytest.mark.parametrize("name", ["solve", "pinv", "gradient of det"])
def test_vmap_of_what_would_be_broadcast_inside_a_compiled_function(name):
    A, mapped = system(3)[0], torch.randn(3, 5, 3, dtype=torch.float64)
    call = {
        "solve": lambda b: linalg.solve(A, b[0], strategy="qr_pinv"),
        "pinv": lambda C: linalg.pinv(
            C, rtol=torch.tensor([0.0, 0.9, 2.0]), strategy="svd_truncated_pinv"
        ),
        "gradient of det": func.grad(lambda C: linalg.det(C[:3], strategy="qr_pinv")),
    }[name]
    one_by_one = torch.stack([call(each) for each in mapped])
    torch.testing.assert_close(compiled(func.vmap(call))(mapped), one_by_one)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("tolerance", ["rtol", "atol"])
def test_second_derivatives_at_a_rank_that_a_tolerance_truncates(tolerance, n):
    U, V = (torch.linalg.qr(each).Q for each in system(2)[0][:, :n, :n])
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
