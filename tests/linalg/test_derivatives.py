"""Derivatives of every operation by every strategy against finite differences."""

import itertools

import pytest
import torch
from comparison import require_derivatives
from operations import (
    ANY_RANK,
    DTYPES,
    expect_known_failure,
    function,
    inputs_of,
    mode,
    own_strategies,
    pairs,
    real_first,
    shapes_of,
)
from torch.autograd import gradcheck, gradgradcheck

from strategies import linalg, operations

SHAPES = [(2, 2), (3, 2), (2, 3)]
EXHAUSTIVE = [(0, 0), (1, 1), *SHAPES]
BATCHES = [(), (2,), (0,)]

pytestmark = pytest.mark.filterwarnings("ignore:Input #")

DET_STRATEGIES = own_strategies(operations.get("det"))


@real_first
@pytest.mark.parametrize(("operation", "strategy"), pairs())
def test_derivatives_along_random_directions(operation, strategy, dtype):
    for shape in shapes_of(operation, SHAPES):
        inputs = inputs_of(operation, shape, (2,), dtype)
        require_derivatives(function(operation, strategy), inputs, batched=False)


@mode("backward", "forward", usual=[])
def test_first_derivatives_in_reverse_and_forward_mode(operation, strategy, dtype, request):
    expect_known_failure(request, operation, strategy)
    for shape, batch in itertools.product(shapes_of(operation, EXHAUSTIVE), BATCHES):
        assert gradcheck(
            function(operation, strategy),
            inputs_of(operation, shape, batch, dtype),
            check_forward_ad=True,
            check_batched_grad=True,
        )


@mode("backward of backward", "forward over backward", usual=[])
def test_second_derivatives_in_reverse_and_forward_over_reverse_mode(
    operation, strategy, dtype, request
):
    expect_known_failure(request, operation, strategy)
    for shape, batch in itertools.product(shapes_of(operation, EXHAUSTIVE), BATCHES):
        assert gradgradcheck(
            function(operation, strategy),
            inputs_of(operation, shape, batch, dtype),
            check_fwd_over_rev=True,
            atol=1e-4,
        )


def _factors(shape, rank, dtype):
    return tuple(torch.randn(size, rank, dtype=dtype, requires_grad=True) for size in shape)


RANKS = [
    (shape, rank)
    for shape, rank in itertools.product([(3, 3), (3, 2), (2, 3)], [0, 1, 2, 3])
    if rank <= min(shape)
]
FEW_RANKS = [((3, 3), 0), ((3, 3), 1), ((3, 3), 2), ((3, 2), 1), ((2, 3), 1), ((30, 30), 1)]
"""Zero, of corank one and more, square, tall and wide, and as in PyTorch's issue 65911."""

each_deficient_operation_and_strategy = pytest.mark.parametrize(
    ("name", "strategy"),
    [("lu", strategy) for strategy in own_strategies(operations.get("lu"))]
    + [(name, strategy) for name in ("pinv", "lstsq") for strategy in ANY_RANK],
)


@pytest.mark.parametrize(
    ("dtype", "ranks"),
    [
        pytest.param(torch.float64, FEW_RANKS, id="few"),
        *(pytest.param(x, RANKS, id=f"{x}-all", marks=pytest.mark.slow) for x in DTYPES),
    ],
)
@each_deficient_operation_and_strategy
def test_a_product_of_factors_of_any_rank(name, strategy, dtype, ranks):
    operation = operations.get(name)
    call = function(operation, strategy)
    for shape, rank in ranks:
        rest = inputs_of(operation, shape, (), dtype)[1:]
        inputs = (*_factors(shape, rank, dtype), *rest)
        require_derivatives(
            lambda a, b, *rest: call(a @ b.mT, *rest), inputs, batched=False, atol=1e-3
        )


@pytest.mark.parametrize(
    ("dtype", "k"),
    [
        pytest.param(torch.float64, 2, id="few"),
        *(pytest.param(x, 3, id=f"{x}-all", marks=pytest.mark.slow) for x in DTYPES),
    ],
)
@each_deficient_operation_and_strategy
def test_a_batch_whose_matrices_differ_in_rank(name, strategy, dtype, k):
    operation = operations.get(name)
    call = function(operation, strategy)
    ranks = (torch.arange(k) < torch.tensor([[k], [1], [0]])).to(dtype).unsqueeze(-2)
    for shape in [(k + 1, k), (k, k + 1)]:
        factors = [torch.randn(3, size, k, dtype=dtype, requires_grad=True) for size in shape]
        rest = [value.detach() for value in inputs_of(operation, shape, (3,), dtype)[1:]]
        assert gradcheck(
            lambda a, b, rest=rest: call((a * ranks) @ b.mT, *rest), factors, check_forward_ad=True
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


@real_first
@pytest.mark.parametrize("strategy", DET_STRATEGIES)
def test_det_of_a_singular_matrix(strategy, dtype):
    for size, corank in [(1, 1), (2, 1), (3, 1), (3, 2), (4, 2), (2, 2), (3, 3)]:
        a, b = (factor.detach() for factor in _factors((size, size), size - corank, dtype))
        A = (a @ b.mT).requires_grad_()
        require_derivatives(lambda A: linalg.det(A, strategy=strategy), (A,), batched=False)


@pytest.mark.parametrize("strategy", DET_STRATEGIES)
def test_gradient_of_det_is_roundoff_from_corank_two_on_and_only_there(strategy):
    a, b = torch.randint(-9, 10, (2, 3, 6, 5)).double()
    coranks = torch.tensor([1, 2, 6])
    a[1, :, 4:], a[2] = 0, 0
    A = (a @ b.mT).requires_grad_()
    linalg.det(A, strategy=strategy).sum().backward()
    # Of minors of five rows.
    roundoff = 6 * torch.finfo(A.dtype).eps * torch.linalg.matrix_norm(A.detach(), 2) ** 5
    is_roundoff = A.grad.abs().amax((-2, -1)) <= roundoff
    assert torch.equal(is_roundoff, coranks > 1)
