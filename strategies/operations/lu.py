"""`lu_factor`, `lu_factor_ex` and `lu`: square, tall, wide and rank-deficient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from strategies import grids
from strategies.amplification import lu_amplification
from strategies.autograd.choice import StrategyChoice, choose, require_float_matrix
from strategies.autograd.nodes import run
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import LinAlgError
from strategies.factors import PackedLU, Triangular
from strategies.factors.canonical_lu import canonical
from strategies.factors.pivots import order_of
from strategies.formulas import lu as formula
from strategies.interface import Saved, Strategy
from strategies.operations.record import Operation, Shape

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["LUFactorExResult", "LUFactorResult", "LUResult", "lu", "lu_factor", "lu_factor_ex"]


class LUFactorResult(NamedTuple):
    """What `lu_factor` returns; the fields of `torch.linalg.lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LUFactorExResult(NamedTuple):
    """What `lu_factor_ex` returns; the fields of `torch.linalg.lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LUResult(NamedTuple):
    """What `lu` returns; the fields of `torch.linalg.lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


def _backward(strategy: Strategy, factors: PackedLU, cotangent: Tensor) -> Tensor:
    rows = formula.backward(strategy.factor_triangular, factors.LU, cotangent)
    return formula.permute_rows(rows, factors.inverse_order)


@dataclass(frozen=True)
class _LUFactor(Rule):
    """Outputs: packed LU, LAPACK pivots, info, inverse row order, rank, whether a pivot may be zero."""

    name = "lu_factor"

    pivot: bool = True
    check_errors: bool = False

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, pivots, info = torch.linalg.lu_factor_ex(inputs[0], pivot=self.pivot)
        if self.check_errors:  # here and not by the caller, who under `vmap` cannot see values
            _raise_for_info(info)
        LU, pivots, order, rank, is_suspect = canonical(LU, pivots)
        return (LU, pivots, info, order, rank, is_suspect), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        LU, _, _, order, rank, is_suspect = saved.outputs
        (cotangent,) = cotangents
        # Of canonical form the trailing pivots are zero, too.
        if bool(is_suspect.any()) and not bool(LU.diagonal(dim1=-2, dim2=-1).all()):
            LU, cotangent = formula.extend(LU, rank), formula.mask_trailing(cotangent, rank)
            _refuse_zero_pivots(LU)
        return (strategy.own("lu_backward", _backward, PackedLU(LU, order), cotangent),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        LU, _, _, order, rank, _ = at.outputs
        rows = formula.backward(
            Triangular, formula.extend(LU, rank), formula.mask_trailing(cotangents[0], rank)
        )
        return (formula.permute_rows(rows, order),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        LU, _, _, order, rank, _ = at.outputs
        rows = formula.permute_rows(only(tangents), order_of(order))
        result = formula.jvp(Triangular, formula.extend(LU, rank), rows)
        return (formula.mask_trailing(result, rank),)


def _refuse_zero_pivots(LU: Tensor) -> None:
    zero = LU.diagonal(dim1=-2, dim2=-1) == 0
    if bool(zero.any()):
        where = tuple(int(i) for i in zero.nonzero()[0])
        batch = f" of batch index {where[:-1]}" if len(where) > 1 else ""
        raise LinAlgError(
            f"pivot {where[-1]}{batch} is zero though later columns are not: the leading columns are "
            "linearly dependent, and LU with row pivoting is not differentiable there"
        )


def lu_factor(
    A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto"
) -> LUFactorResult:
    """The packed LU factorization with partial pivoting, A = P L U.

    As `torch.linalg.lu_factor`. Where A is rank-deficient to roundoff, the trailing block of the
    factors, in which the pivoting is noise, is put in canonical form (zero, rows unswapped), and
    the gradient is the one along perturbations that keep the rank.

    Args:
        A: (..., m, n), float32, float64, complex64 or complex128.
        pivot: False leaves the rows in place (CUDA only, as in torch).
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        LU, (..., m, n), and LAPACK pivots (1-based row swaps), int32 (..., min(m, n)).

    Raises:
        torch.linalg.LinAlgError: a pivot is exactly zero.
        RuntimeError: A has fewer than two dimensions, or is not floating-point.

    Example:
        >>> LU, pivots = lu_factor(torch.tensor([[0.0, 2.0], [4.0, 8.0]]), strategy="native")
        >>> LU.tolist(), pivots.tolist()
        ([[4.0, 8.0], [0.0, 2.0]], [2, 2])
    """
    (chosen,) = choose(strategy, "lu_factor", A)
    if chosen.forward_is_differentiable:
        return LUFactorResult(*torch.linalg.lu_factor(A, pivot=pivot))
    require_float_matrix("lu_factor", A)
    LU, pivots, *_ = run(_LUFactor(pivot, check_errors=True), chosen, A)
    return LUFactorResult(LU, pivots)


def lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> LUFactorExResult:
    """`lu_factor` that reports a zero pivot in `info` (its 1-based position; 0 is none).

    Args:
        A: as in `lu_factor`.
        pivot: as in `lu_factor`.
        check_errors: raise as `lu_factor` does.
        strategy: as in `lu_factor`.

    Returns:
        LU and pivots as in `lu_factor`, and info, int32 (...).

    Raises:
        torch.linalg.LinAlgError: a pivot is exactly zero and `check_errors` is set.

    Example:
        >>> lu_factor_ex(torch.zeros(1, 1), strategy="triangular_solve").info
        tensor(1, dtype=torch.int32)
    """
    (chosen,) = choose(strategy, "lu_factor", A)
    if chosen.forward_is_differentiable:
        return LUFactorExResult(
            *torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        )
    require_float_matrix("lu_factor_ex", A)
    LU, pivots, info, *_ = run(_LUFactor(pivot, check_errors), chosen, A)
    return LUFactorExResult(LU, pivots, info)


def _raise_for_info(info: Tensor) -> None:
    if bool(info.any()):
        index = tuple(int(i) for i in (info != 0).nonzero()[0])
        batch = f"(Batch element {index[0] if len(index) == 1 else index}): " if index else ""
        raise LinAlgError(
            f"{batch}U[{int(info[index])},{int(info[index])}] is zero and using it "
            "on lu_solve would result in a division by zero. If you still want to perform the "
            "factorization, consider calling linalg.lu or linalg.lu_factor_ex"
        )


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

    Example:
        >>> P, L, U = lu(torch.tensor([[0.0, 2.0], [4.0, 8.0]]), strategy="triangular_solve")
        >>> (P @ L @ U).tolist()
        [[0.0, 2.0], [4.0, 8.0]]
    """
    (chosen,) = choose(strategy, "lu_factor", A)
    if chosen.forward_is_differentiable:
        return LUResult(*torch.linalg.lu(A, pivot=pivot))
    require_float_matrix("lu", A)
    LU, _, _, order, *_ = run(_LUFactor(pivot), chosen, A)
    m, n = A.shape[-2:]
    k = min(m, n)
    unit = torch.eye(m, k, dtype=A.dtype, device=A.device)
    L, U = LU[..., :k].tril(-1) + unit, LU[..., :k, :].triu()
    if not pivot:
        return LUResult(A.new_empty(0), L, U)
    identity = torch.eye(m, dtype=A.dtype, device=A.device)
    return LUResult(identity[order], L, U)


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.lu import lu_gradient

    matrix, cotangent = problem.operands
    return (lu_gradient(matrix, cotangent, cotangent, problem.rank, problem.order),)


def _exact_unpacked(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.lu import lu_gradient

    matrix, of_lower, of_upper = problem.operands
    return (lu_gradient(matrix, of_lower, of_upper, problem.rank, problem.order),)


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
        exact=_exact_unpacked,
        cells=grids.LU,
        pivoted=True,
        answered_by="lu_factor",
        amplification=lu_amplification,
    ),
)
