"""Operators under the transforms of torch.func: computed once for all samples and cotangents."""

import functools

import pytest
import torch
from comparison import drawn
from operations import compiled
from torch.utils._pytree import tree_leaves

from strategies import linalg, operations
from tests.autograd.plain_calls import loss_of, matrices
from tests.autograd.recorded import Recorded
from tests.kernels.cpu.by_plan import EVERY, SHAPES, SQUARE, inputs_of

func = torch.func
OPERATORS = torch.ops.backward_strategies


@pytest.mark.parametrize("strategy", ["fused", "qr_pinv"])
@pytest.mark.parametrize("count", [16, 4, 0])
@pytest.mark.parametrize("is_expanded", [True, False])
def test_a_gradient_is_mapped_over_cotangents_alone(is_expanded, count, strategy):
    A = matrices()[0]
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
    A, _, B, _ = matrices(8)
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
        "solve_triangular": lambda A, B: linalg.solve_triangular(A, B, upper=True),
    }.items(),
)
def test_an_operator_computes_all_samples_once(name, call):
    A, _, B, _ = matrices(8)
    with Recorded() as recorded:
        func.vmap(func.grad(loss_of(call)))(A, B)
    assert recorded.count(name) == recorded.count(f"{name}_backward") == 1
    assert not recorded.count("linalg_lu_factor_ex") + recorded.count("linalg_solve_triangular")


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
    A, B = matrices(*of_A)[0], matrices(*of_B)[2]
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
    A = matrices()[0]
    with Recorded() as recorded:
        found = func.jacrev(linalg.inv)(A)
    torch.testing.assert_close(found, func.jacrev(torch.linalg.inv)(A))
    (operands,) = (arguments[0] for name, arguments in recorded.calls if name == "inv_backward")
    assert [each.shape for each in operands] == [(3, 3), (9, 3, 3)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
@pytest.mark.parametrize("of", [each for each in EVERY if each[0] == "factors"])
def test_many_cotangents_have_the_gradients_of_each(of, dtype):
    operation = operations.get(of[1])
    limit = 1e3 * torch.finfo(dtype).eps
    for m, n in SHAPES.get(of, SQUARE):
        inputs = inputs_of(of, m, n, dtype)
        outputs, pull = func.vjp(lambda *x: operation.outputs(operation.function(*x)), *inputs)
        cotangents = tuple(drawn(9, *each.shape, dtype=each.dtype) for each in outputs)
        found = func.vmap(pull)(cotangents)
        due = [pull(tuple(each[i] for each in cotangents)) for i in range(9)]
        for many, one_by_one in zip(found, map(torch.stack, zip(*due, strict=True)), strict=True):
            assert (many - one_by_one).norm() <= limit * one_by_one.norm()


@pytest.mark.parametrize("shape", [(1, 6, 4), (4, 6), (5, 5)])
def test_many_cotangents_of_a_deficient_matrix_have_the_gradients_of_each(shape):
    A = drawn(*shape[:-1], 2) @ drawn(2, shape[-1])
    X, pull = func.vjp(linalg.pinv, A)
    cotangents = drawn(9, *X.shape)
    (found,) = func.vmap(pull)(cotangents)
    torch.testing.assert_close(found, torch.stack([pull(each)[0] for each in cotangents]))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("part", [0, 1])
def test_a_jacobian_of_one_output_of_two(part, is_complex):
    def output(A, by):
        found = by.slogdet(torch.complex(A, A.mT) if is_complex else A)[part]
        return torch.stack([found.real, found.abs()])

    A = matrices()[0]
    found, due = (
        func.jacrev(functools.partial(output, by=functions))(A)
        for functions in (linalg, torch.linalg)
    )
    torch.testing.assert_close(found, due)


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("name", ["inv", "det", "pinv"])
def test_jacobians_of_as_many_matrices_as_there_are_cotangents(name, size):
    A = matrices(size)[0]
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
    A, B = matrices(2)[0], matrices(2)[0]
    transformed = transform(functools.partial(linalg.solve, strategy="qr_pinv"))
    torch.testing.assert_close(compiled(transformed)(A, B), transformed(A, B))


@pytest.mark.parametrize("name", ["solve", "pinv", "gradient of det"])
def test_vmap_of_what_would_be_broadcast_inside_a_compiled_function(name):
    A, mapped = matrices(3)[0], torch.randn(3, 5, 3, dtype=torch.float64)
    call = {
        "solve": lambda b: linalg.solve(A, b[0], strategy="qr_pinv"),
        "pinv": lambda C: linalg.pinv(
            C, rtol=torch.tensor([0.0, 0.9, 2.0]), strategy="svd_truncated_pinv"
        ),
        "gradient of det": func.grad(lambda C: linalg.det(C[:3], strategy="qr_pinv")),
    }[name]
    one_by_one = torch.stack([call(each) for each in mapped])
    torch.testing.assert_close(compiled(func.vmap(call))(mapped), one_by_one)


def test_a_tensor_that_has_left_its_vmap_is_refused():
    left = []
    torch.vmap(lambda A: left.append(A) or A)(matrices(2)[0])
    with pytest.raises(RuntimeError):
        OPERATORS.inv(left[0], "auto")


@pytest.mark.parametrize("name", ["inv", "pinv", "qr"])
def test_autograd_may_record_a_hessian_of_what_is_functionalized(name):
    A = matrices()[0].requires_grad_()

    def derivative(functions):
        call = getattr(functions, name)
        cubes = func.functionalize(lambda A: tree_leaves(call(A))[0].pow(3).sum())
        return torch.autograd.grad(func.hessian(cubes)(A).square().sum(), A)

    torch.testing.assert_close(derivative(linalg), derivative(torch.linalg))


def test_the_functionalized_triangle_alone_has_the_jacobian_of_the_triangle():
    A = matrices()[0]
    jacobians = [
        func.jacfwd(func.functionalize(lambda A, mode=mode: linalg.qr(A, mode).R))(A)
        for mode in ("r", "reduced")
    ]
    torch.testing.assert_close(*jacobians)
