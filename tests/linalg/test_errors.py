"""What bad input gets, for every operation and strategy."""

from __future__ import annotations

import pytest
import torch
from operations import ANY_RANK, OPERATIONS, STRATEGIES, function

import strategies
from strategies import linalg

FULL_RANK_ONLY = [name for name in STRATEGIES if name not in ANY_RANK]
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
DEFICIENT = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=torch.float64)


def _call(operation, strategy, A: torch.Tensor) -> object:
    return function(operation, strategy)(*(A, torch.ones_like(A))[: operation.arity])


@each_strategy
def test_a_vector_is_refused_as_torch_refuses_it(strategy):
    for operation in OPERATIONS:
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            _call(operation, strategy, torch.ones(3))


@each_strategy
def test_integers_are_refused(strategy):
    for operation in OPERATIONS:
        with pytest.raises(RuntimeError, match=r"floating point or complex.*int64"):
            _call(operation, strategy, torch.ones(3, 3, dtype=torch.int64))


@each_strategy
def test_a_square_operation_names_the_shape_that_is_not(strategy):
    for operation in (each for each in OPERATIONS if each.square):
        with pytest.raises(RuntimeError, match=r"square.*3 by 2"):
            _call(operation, strategy, torch.ones(3, 2))


@each_strategy
@pytest.mark.parametrize("operation", [linalg.solve, linalg.lstsq])
def test_different_dtypes_are_both_named(operation, strategy):
    with pytest.raises(RuntimeError, match=r"float32.*float64"):
        operation(torch.eye(3), torch.ones(3, 1, dtype=torch.float64), strategy=strategy)


@each_strategy
@pytest.mark.parametrize("operation", [linalg.solve, linalg.lstsq])
def test_shapes_that_do_not_fit_are_both_named(operation, strategy):
    with pytest.raises(RuntimeError, match=r"3.*3.*4"):
        operation(torch.eye(3), torch.ones(4, 1), strategy=strategy)


@each_strategy
@pytest.mark.parametrize("operation", [linalg.inv, lambda A, **s: linalg.solve(A, A, **s)])
def test_a_singular_matrix_names_strategy_and_batch_index(operation, strategy):
    A = torch.eye(2).repeat(3, 1, 1)
    A[1] = 0

    with pytest.raises(torch.linalg.LinAlgError, match=rf"linalg\.\w+:.*'{strategy}'.*index 1"):
        operation(A, strategy=strategy)


@pytest.mark.parametrize("strategy", FULL_RANK_ONLY)
def test_rank_deficient_input_names_strategies_that_take_it(strategy):
    with pytest.raises(torch.linalg.LinAlgError, match=f"pinv.*'{strategy}'.*qr_pinv"):
        linalg.pinv(DEFICIENT, strategy=strategy)
    with pytest.raises(torch.linalg.LinAlgError, match=f"lstsq.*'{strategy}'.*qr_pinv"):
        linalg.lstsq(DEFICIENT, DEFICIENT, strategy=strategy)


@each_strategy
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("operation", [linalg.pinv, lambda A, **s: linalg.lstsq(A, A, **s)])
def test_pinv_and_lstsq_of_non_finite_entries_raise(operation, bad, strategy):
    A = torch.ones(4, 2, dtype=torch.float64)
    A[0, 0] = bad

    with pytest.raises(torch.linalg.LinAlgError):
        operation(A, strategy=strategy)


@each_strategy
def test_lu_factor_of_a_zero_matrix_raises_as_in_torch_and_the_ex_form_reports(strategy):
    A = torch.zeros(2, 3, 3)
    A[0] = torch.eye(3)

    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
        linalg.lu_factor(A, strategy=strategy)
    assert linalg.lu_factor_ex(A, strategy=strategy).info.tolist() == [0, 1]
    with pytest.raises(torch.linalg.LinAlgError):
        linalg.lu_factor_ex(A, check_errors=True, strategy=strategy)


@each_strategy
def test_lu_with_dependent_leading_columns_has_no_gradient_and_says_so(strategy):
    A = torch.tensor([[0.0, 1.0], [0.0, 2.0]], requires_grad=True)
    _, L, U = linalg.lu(A, strategy=strategy)

    with pytest.raises(torch.linalg.LinAlgError, match="linearly dependent"):
        (L.sum() + U.sum()).backward()


@each_strategy
def test_slogdet_of_a_singular_matrix_has_a_value_and_no_gradient(strategy):
    A = torch.zeros(2, 2, requires_grad=True)
    logabsdet = linalg.slogdet(A, strategy=strategy).logabsdet

    assert logabsdet == -torch.inf
    with pytest.raises(torch.linalg.LinAlgError, match=r"slogdet.*singular"):
        logabsdet.backward()


@each_strategy
def test_lapack_drivers_are_left_to_native(strategy):
    with pytest.raises(strategies.UnsupportedError, match=r"gelsd.*native"):
        linalg.lstsq(torch.ones(3, 1), torch.ones(3, 1), driver="gelsd", strategy=strategy)


def test_an_unknown_strategy_and_a_wrong_kind_of_choice():
    with pytest.raises(strategies.StrategyNotFoundError, match="triangular_solve"):
        linalg.inv(torch.eye(2), strategy="triangular_solver")
    with pytest.raises(TypeError, match="name or a Strategy"):
        linalg.inv(torch.eye(2), strategy=3)


@pytest.mark.parametrize(
    "operation", [linalg.pinv, lambda A, **s: linalg.lstsq(A, A, **s).solution]
)
def test_the_default_takes_any_rank(operation):
    torch.testing.assert_close(
        operation(DEFICIENT), operation(DEFICIENT, strategy="svd_truncated_pinv")
    )
