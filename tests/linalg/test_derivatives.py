"""Derivatives of every operation by every strategy against finite differences."""

from __future__ import annotations

import itertools

import pytest
import torch
from operations import ANY_RANK, DTYPES, OPERATIONS, STRATEGIES, Operation, shapes_of
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

CASES = [
    pytest.param(
        operation,
        shape,
        strategy,
        id=f"{operation}-{strategy}-{shape[0]}x{shape[1]}",
        # `lu` unpacks what `lu_factor` returns.
        marks=[pytest.mark.slow] if operation.name == "lu_factor" else operation.marks(strategy),
    )
    for operation in OPERATIONS
    for strategy in strategies.available()
    for shape in shapes_of(operation)
]


def _batches(*usual: tuple[int, ...]) -> list[object]:
    every = [(), (2,), (0,), (2, 1)]
    return [
        pytest.param(batch, marks=() if batch in usual else pytest.mark.slow, id=str(batch))
        for batch in every
    ]


pytestmark = pytest.mark.filterwarnings("ignore:Input #")


@pytest.mark.mode("backward", "forward")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", _batches((), (2,)))
@pytest.mark.parametrize(("operation", "shape", "strategy"), CASES)
def test_first_derivatives_in_reverse_and_forward_mode(
    operation: Operation, shape, strategy: str, batch, dtype
):
    inputs = operation.inputs(shape, batch, dtype)

    assert gradcheck(
        operation.function(strategy), inputs, check_forward_ad=True, check_batched_grad=True
    )


@pytest.mark.mode("backward of backward", "forward over backward")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", _batches(()))
@pytest.mark.parametrize(("operation", "shape", "strategy"), CASES)
def test_second_derivatives_in_reverse_and_forward_over_reverse_mode(
    operation: Operation, shape, strategy: str, batch, dtype
):
    inputs = operation.inputs(shape, batch, dtype)

    assert gradgradcheck(operation.function(strategy), inputs, check_fwd_over_rev=True, atol=1e-4)


def _factors(shape: tuple[int, int], rank: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rank)
    return tuple(
        torch.randn(size, rank, dtype=dtype, generator=generator, requires_grad=True)
        for size in shape
    )


DEFICIENT = [
    pytest.param(shape, rank, id=f"{shape[0]}x{shape[1]}-rank{rank}")
    for shape, rank in itertools.product([(3, 3), (3, 2), (2, 3)], [0, 1, 2, 3])
    if rank <= min(shape)
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("shape", "rank"), DEFICIENT)
def test_lu_of_a_product_of_factors_of_any_rank(shape, rank, strategy, dtype):
    factors = _factors(shape, rank, dtype)

    def function(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return linalg.lu(a @ b.mT, strategy=strategy)[1:]

    assert gradcheck(function, factors, check_forward_ad=True)
    assert gradgradcheck(function, factors, check_fwd_over_rev=True, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", ANY_RANK)
@pytest.mark.parametrize(("shape", "rank"), DEFICIENT)
def test_pinv_of_a_product_of_factors_of_any_rank(shape, rank, strategy, dtype):
    factors = _factors(shape, rank, dtype)

    def function(a: Tensor, b: Tensor) -> Tensor:
        return linalg.pinv(a @ b.mT, strategy=strategy)

    assert gradcheck(function, factors, check_forward_ad=True)
    assert gradgradcheck(function, factors, check_fwd_over_rev=True, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", ANY_RANK)
@pytest.mark.parametrize(("shape", "rank"), DEFICIENT)
def test_lstsq_of_a_product_of_factors_of_any_rank(shape, rank, strategy, dtype):
    B = torch.randn(shape[0], 2, dtype=dtype, requires_grad=True)
    factors = _factors(shape, rank, dtype)

    def function(a: Tensor, b: Tensor, rhs: Tensor) -> Tensor:
        return linalg.lstsq(a @ b.mT, rhs, strategy=strategy).solution

    assert gradcheck(function, (*factors, B), check_forward_ad=True)
    assert gradgradcheck(function, (*factors, B), check_fwd_over_rev=True, atol=1e-3)


@pytest.mark.parametrize("strategy", ANY_RANK)
def test_pinv_of_a_rank_one_product_as_in_pytorch_issue_65911(strategy):
    a, b = _factors((30, 30), 1, torch.float64)

    assert gradcheck(lambda a, b: linalg.pinv(a @ b.t(), strategy=strategy), (a, b))


def _of_ranks_3_1_and_0(a: Tensor, b: Tensor) -> Tensor:
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=a.dtype).unsqueeze(-2)
    return (a * mask) @ b.mT


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4)], ids=str)
@pytest.mark.parametrize(
    ("operation", "strategy"),
    [("lu", strategy) for strategy in STRATEGIES]
    + [(operation, strategy) for operation in ("pinv", "lstsq") for strategy in ANY_RANK],
)
def test_a_batch_whose_matrices_differ_in_rank(operation, strategy, shape, dtype):
    (call,) = [each.function(strategy) for each in OPERATIONS if each.name == operation]
    factors = [torch.randn(3, size, 3, dtype=dtype, requires_grad=True) for size in shape]
    rest = (torch.randn(3, shape[0], 2, dtype=dtype),) if operation == "lstsq" else ()

    assert gradcheck(
        lambda a, b: call(_of_ranks_3_1_and_0(a, b), *rest), factors, check_forward_ad=True
    )


@pytest.mark.parametrize("strategy", ANY_RANK)
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_pinv_with_repeated_singular_values(strategy, scale):
    A = torch.eye(4, 3, dtype=torch.float64)
    A[2, 2] = scale
    left, right = torch.eye(4, 4, dtype=torch.float64), torch.eye(3, 3, dtype=torch.float64)

    assert gradcheck(
        lambda left, right: linalg.pinv(left @ A @ right, strategy=strategy),
        (left.requires_grad_(), right.requires_grad_()),
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("size", "corank"), [(1, 1), (2, 1), (3, 1), (3, 2), (4, 2), (2, 2), (3, 3)]
)
def test_det_of_a_singular_matrix(size, corank, strategy, dtype):
    a, b = (factor.detach() for factor in _factors((size, size), size - corank, dtype))
    A = (a @ b.mT).requires_grad_()

    assert gradcheck(lambda A: linalg.det(A, strategy=strategy), (A,), check_forward_ad=True)
    assert gradgradcheck(lambda A: linalg.det(A, strategy=strategy), (A,), check_fwd_over_rev=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_det_at_corank_one_where_the_computed_determinant_is_exactly_zero(strategy):
    A = torch.tensor([[2.0, 4.0], [3.0, 6.0]], dtype=torch.float64, requires_grad=True)

    linalg.det(A, strategy=strategy).backward()

    torch.testing.assert_close(
        A.grad, torch.tensor([[6.0, -3.0], [-4.0, 2.0]], dtype=torch.float64)
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradient_of_det_is_exactly_zero_from_corank_two_on_and_only_there(strategy):
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randint(-9, 10, (2, 3, 6, 5), generator=generator).double()
    coranks = torch.tensor([1, 2, 6])
    a[1, :, 4:], a[2] = 0, 0
    A = (a @ b.mT).requires_grad_()

    linalg.det(A, strategy=strategy).sum().backward()

    assert torch.equal((A.grad == 0).all(-1).all(-1), coranks > 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_second_derivatives_of_det_in_a_batch_of_every_corank(strategy):
    # The determinant of 3×3 matrices is a polynomial that takes no factorization.
    def polynomial(A):
        x, y, z = A.unbind(-2)
        return (x * torch.linalg.cross(y, z)).sum(-1)

    a, b = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    a *= (torch.arange(3) < torch.tensor([[3], [2], [1], [0]])).unsqueeze(-2)
    A, V = a @ b.mT, torch.randn(4, 3, 3, dtype=torch.float64)

    def second(function):
        A_ = A.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(A_).sum(), A_, create_graph=True)
        return torch.autograd.grad((gradient * V).sum(), A_)[0]

    torch.testing.assert_close(
        second(lambda A: linalg.det(A, strategy=strategy)), second(polynomial)
    )
