"""`lu_factor`, `lu_factor_ex` and `lu`: square, tall, wide and rank-deficient."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import run
from strategies.autograd.operators import Operator
from strategies.autograd.quadratic import pull
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.factors.pivots import inverse_order, order_of
from strategies.formulas import lu as formula
from strategies.formulas.amplification import lu_amplification
from strategies.formulas.matrices import first_columns, first_rows
from strategies.formulas.values import with_values
from strategies.kernels.memory import is_addressable
from strategies.operations import grids
from strategies.operations.lu_rule import EQUATION, LUFactor
from strategies.operations.record import Operation, Shape, exact
from strategies.operations.results import LUFactorExResult, LUFactorResult, LUResult
from strategies.operations.scaled_rule import with_normalized_cotangents, with_normalized_directions
from strategies.operations.traceable import traceable_by
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["LUFactorExResult", "LUFactorResult", "LUResult", "lu", "lu_factor", "lu_factor_ex"]


def _traced_lu_factor(
    A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto"
) -> LUFactorResult:
    if not are_matrices(A):
        return LUFactorResult(*torch.linalg.lu_factor(A, pivot=pivot))
    return LUFactorResult(*_OPERATOR(A, pivot, True, name_of(strategy))[:2])


@traceable_by(_traced_lu_factor)
def lu_factor(
    A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto"
) -> LUFactorResult:
    """The packed LU factorization with partial pivoting, A = P L U.

    As `torch.linalg.lu_factor`. Where A is rank-deficient to roundoff, the trailing block of the
    factors, in which the pivoting is noise, is put in canonical form (zero, rows unswapped), and
    the gradient is the one along perturbations that keep the rank. Where roundoff leaves the rank
    open, or the leading columns are linearly dependent, the factors are PyTorch's, the backward
    raises, and forward mode gives NaN. NaN and infinity in A are passed on, as PyTorch does.

    Args:
        A: (..., m, n), float32, float64, complex64 or complex128, or float16 or bfloat16, computed in
            float32.
        pivot: False leaves the rows in place (CUDA only, as in torch).
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        LU, (..., m, n), and LAPACK pivots (1-based row swaps), int32 (..., min(m, n)).

    Raises:
        torch.linalg.LinAlgError: a pivot is exactly zero; or, in the backward, the rank is not determined.
        RuntimeError: A has fewer than two dimensions, or is not floating-point.

    Example:
        >>> LU, pivots = lu_factor(torch.tensor([[0.0, 2.0], [4.0, 8.0]]), strategy="native")
        >>> LU.tolist(), pivots.tolist()
        ([[4.0, 8.0], [0.0, 2.0]], [2, 2])
    """
    outputs = _lu_factor_fast_path(strategy, A) if pivot else None
    if outputs is None:
        outputs = _general_lu_factor(choose(strategy, "lu_factor", A), A, pivot=pivot)
    return LUFactorResult._make(outputs)


def _general_lu_factor(
    candidates: tuple[Strategy, ...], A: Tensor, *, pivot: bool = True
) -> Tensors:
    (chosen,) = candidates
    if chosen.forward_is_differentiable:
        return tuple(torch.linalg.lu_factor(A, pivot=pivot))
    return run(LUFactor(pivot, check_errors=True), chosen, A)[:2]


@with_normalized_cotangents
def _explicit_lu_factor(
    _: Strategy, __: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    LU, pivots = outputs
    order = inverse_order(pivots, LU.shape[-2])
    return (formula.permute_rows(_pulled_back(LU, *cotangents), order),)


def _deficient_ranks(LU: Tensor) -> Tensor | None:
    """The ranks of canonical factors, int64 (...); None if they are all known to be full."""
    pivots = LU.diagonal(dim1=-2, dim2=-1)
    if is_addressable(LU) and int(pivots.count_nonzero()) == pivots.numel():
        return None
    return (pivots != 0).sum(-1)


def _pulled_back(LU: Tensor, cotangent: Tensor) -> Tensor:
    if (rank := _deficient_ranks(LU)) is not None:
        LU, cotangent = formula.extend(LU, rank), formula.mask_trailing(cotangent, rank)
    return pull(EQUATION, LU, cotangent)


def _pushed(LU: Tensor, rows: Tensor) -> Tensor:
    if (rank := _deficient_ranks(LU)) is None:
        return EQUATION.push(LU, rows)
    return formula.mask_trailing(EQUATION.push(formula.extend(LU, rank), rows), rank)


def _in_pivoted_order(computed: Computed, matrices: Gradients) -> Tensor:
    """The rows of a matrix in the order of elimination."""
    kept = computed.factors  # of a plan for CUDA there are none
    inverse = (
        kept[-1] if kept else inverse_order(computed.outputs[1], computed.outputs[0].shape[-2])
    )
    return formula.permute_rows(only(matrices), order_of(inverse))


@with_normalized_directions
def _second_backward_of_lu_factor(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    if _deficient_ranks(computed.outputs[0]) is not None:
        return None
    (tangent,) = _lu_factor_tangents(computed, directions)
    of_LU = -EQUATION.second_adjoint(tangent, _in_pivoted_order(computed, gradients))
    return (None,), (of_LU, None), (tangent, *cotangents[1:])


def _lu_factor_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    return (_pushed(computed.outputs[0], _in_pivoted_order(computed, tangents)),)


_lu_factor_fast_path = FastPath(
    "lu_factor",
    _general_lu_factor,
    policy_operation="lu_factor",
    explicit=_explicit_lu_factor,
    tangents=_lu_factor_tangents,
    second_backward=_second_backward_of_lu_factor,
    unread=(0,),
)
_checked_fast_path = dataclasses.replace(_lu_factor_fast_path, reports=True)
_lu_factor_ex_fast_path = dataclasses.replace(
    _lu_factor_fast_path, operation="lu_factor_ex", unread_outputs=(2,)
)
_OPERATOR = Operator(
    "lu_factor_ex",
    ["A"],
    "bool pivot, bool check_errors",
    outputs=3,
    measured_as="lu_factor",
    by_columns=(0,),
    fast_paths=[(_lu_factor_ex_fast_path, [True, False]), (_checked_fast_path, [True, True])],
    workspace=lambda m, _, __: (0, m),
)


def _traced_lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> LUFactorExResult:
    if not are_matrices(A):
        return LUFactorExResult(
            *torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        )
    return LUFactorExResult(*_OPERATOR(A, pivot, check_errors, name_of(strategy)))


@traceable_by(_traced_lu_factor_ex)
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> LUFactorExResult:
    """`lu_factor` that reports a zero pivot in `info` (its 1-based position; 0 is none).

    As `torch.linalg.lu_factor_ex`.

    Args:
        A: as in `lu_factor`.
        pivot: as in `lu_factor`.
        check_errors: raise as `lu_factor` does.
        strategy: as in `lu_factor`.

    Returns:
        LU and pivots as in `lu_factor`, and info, int32 (...).

    Raises:
        torch.linalg.LinAlgError: a pivot is exactly zero and `check_errors` is set; or, in the
            backward, the rank is not determined.
        RuntimeError: as in `lu_factor`.

    Example:
        >>> lu_factor_ex(torch.zeros(1, 1), strategy="triangular_solve").info
        tensor(1, dtype=torch.int32)
    """
    fast_path = _checked_fast_path if check_errors else _lu_factor_ex_fast_path
    outputs = fast_path(strategy, A) if pivot else None
    if outputs is not None:
        return LUFactorExResult._make(outputs)
    (chosen,) = choose(strategy, "lu_factor", A)
    if chosen.forward_is_differentiable:
        return LUFactorExResult(
            *torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        )
    LU, pivots, info, *_ = run(LUFactor(pivot, check_errors), chosen, A)
    return LUFactorExResult(LU, pivots, info)


def _traced_lu(A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto") -> LUResult:
    if not are_matrices(A):
        return LUResult(*torch.linalg.lu(A, pivot=pivot))
    LU, pivots, _ = _OPERATOR(A, pivot, False, name_of(strategy))
    return LUResult(*torch.lu_unpack(LU, pivots, unpack_pivots=pivot))


@traceable_by(_traced_lu)
def lu(A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto") -> LUResult:
    """The factors of A = P L U with partial pivoting as three matrices.

    As `torch.linalg.lu`, with the canonical form and the gradient of `lu_factor` where A is
    rank-deficient.

    Args:
        A: (..., m, n).
        pivot: as in `lu_factor`; without it P is empty.
        strategy: as in `lu_factor`.

    Returns:
        P (..., m, m), L (..., m, k) unit lower trapezoidal, U (..., k, n), k = min(m, n).

    Raises:
        torch.linalg.LinAlgError: in the backward, the rank is not determined.
        RuntimeError: A has fewer than two dimensions, or is not floating-point.

    Example:
        >>> P, L, U = lu(torch.tensor([[0.0, 2.0], [4.0, 8.0]]), strategy="triangular_solve")
        >>> (P @ L @ U).tolist()
        [[0.0, 2.0], [4.0, 8.0]]
    """
    outputs = _lu_fast_path(strategy, A) if pivot else None
    if outputs is None:
        outputs = _general_lu(choose(strategy, "lu_factor", A), A, pivot=pivot)
    return LUResult._make(outputs)


def _general_lu(candidates: tuple[Strategy, ...], A: Tensor, *, pivot: bool = True) -> Tensors:
    (chosen,) = candidates
    if chosen.forward_is_differentiable:
        return tuple(torch.linalg.lu(A, pivot=pivot))
    LU, _, _, order, *_ = run(LUFactor(pivot), chosen, A)
    m, n = A.shape[-2:]
    k = min(m, n)
    unit = torch.eye(m, k, dtype=A.dtype, device=A.device)
    below, U = first_columns(LU, k).tril(-1), first_rows(LU, k).triu()
    L = with_values(below, below.detach() + unit)
    if not pivot:
        return A.new_empty(0), L, U
    identity = torch.eye(m, dtype=A.dtype, device=A.device)
    return identity[order], L, U


@with_normalized_cotangents
def _explicit_lu(_: Strategy, __: Gradients, outputs: Tensors, cotangents: Tensors) -> Tensors:
    P, L, U = outputs
    LU, of_LU = formula.packed(L, U), formula.packed(*cotangents)
    return (formula.permute_rows(_pulled_back(LU, of_LU), P.real.argmax(-1)),)


@with_normalized_directions
def _second_backward_of_lu(
    computed: Computed, gradients: Gradients, _: Gradients, directions: Gradients
) -> SecondGradients | None:
    if _deficient_ranks(computed.outputs[2]) is not None:
        return None
    dL, dU = _lu_tangents(computed, directions)[1:]
    rows = _in_pivoted_order(computed, gradients)
    of_L, of_U = formula.second_adjoint(dL, dU, rows)
    return (None,), (None, -of_L.tril(-1), -of_U.triu()), (None, dL, dU)


def _lu_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    P, L, U = computed.outputs
    rows = _in_pivoted_order(computed, tangents)
    return P.new_zeros(P.shape), *formula.unpacked(_pushed(formula.packed(L, U), rows))


_lu_fast_path = FastPath(
    "lu",
    _general_lu,
    policy_operation="lu_factor",
    explicit=_explicit_lu,
    tangents=_lu_tangents,
    second_backward=_second_backward_of_lu,
    unread=(0,),
)
ATEN = (
    AtenCalls("linalg_lu_factor", _lu_factor_fast_path, [True], returned=(0, 1)),
    AtenCalls("linalg_lu_factor_ex", _lu_factor_ex_fast_path, [True, False], returned=(0, 1, 2)),
    AtenCalls("linalg_lu", _lu_fast_path, [True], returned=(0, 1, 2)),
)


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    problem.check_rank()
    matrix, *cotangents = problem.operands  # of both factors, or of each
    of_lower, of_upper = cotangents[0], cotangents[-1]
    return (exact("lu").lu_gradient(matrix, of_lower, of_upper, problem.rank, problem.order),)


def _unpacked_shapes(matrix: Shape) -> list[Shape]:
    *batch, m, n = matrix
    return [(*batch, m, min(m, n)), (*batch, min(m, n), n)]


RECORDS = (
    Operation(
        name="lu_factor",
        function=lu_factor,
        outputs=lambda result: (result.LU,),
        exact=_exact,
        cells=grids.LU,
        pivoted=True,
        stem="lu",
        amplification=lu_amplification,
    ),
    Operation(
        name="lu",
        function=lu,
        outputs=lambda result: (result.L, result.U),
        output_shapes=_unpacked_shapes,
        exact=_exact,
        cells=grids.LU,
        pivoted=True,
        policy_operation="lu_factor",
        amplification=lu_amplification,
    ),
)
