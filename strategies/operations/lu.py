"""`lu_factor`, `lu_factor_ex` and `lu`: square, tall, wide and rank-deficient."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import pad

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, choose
from strategies.autograd.fast_path import FastPath
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import is_differentiated, run
from strategies.autograd.operators import OPERATORS
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.errors import LinAlgError, raise_for_info
from strategies.factors import PackedLU, Triangular
from strategies.factors.canonical_lu import canonical
from strategies.factors.elimination import lu_factor_ex as eliminate
from strategies.factors.lu_rank import UNDECIDED
from strategies.factors.pivots import inverse_order, order_of
from strategies.formulas import lu as formula
from strategies.formulas.amplification import lu_amplification
from strategies.formulas.smooth_lu import Near
from strategies.operations import grids
from strategies.operations.record import Operation, Shape
from strategies.operations.results import LUFactorExResult, LUFactorResult, LUResult
from strategies.operations.scaled_rule import (
    are_in_safe_range,
    exponents,
    is_in_safe_range,
    times_power_of_two,
    with_normalized_cotangents,
)
from strategies.operations.smooth_rule import SmoothRule
from strategies.operations.traced import traceable
from strategies.strategy import Saved, Strategy

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["LUFactorExResult", "LUFactorResult", "LUResult", "lu", "lu_factor", "lu_factor_ex"]


_ZERO_PIVOT = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want "
    "to perform the factorization, consider calling linalg.lu or linalg.lu_factor_ex"
)


def _backward(strategy: Strategy, factors: PackedLU, cotangent: Tensor) -> Tensor:
    rows = formula.backward(strategy.factor_triangular, factors.LU, cotangent)
    return formula.permute_rows(rows, factors.inverse_order)


@dataclass(frozen=True)
class _LUFactor(SmoothRule):
    """Outputs: packed LU, LAPACK pivots, info, inverse row order, rank, whether that was in doubt."""

    name = "lu_factor"

    pivot: bool = True
    check_errors: bool = False

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, pivots, info = eliminate(inputs[0], pivot=self.pivot)
        if self.check_errors:  # here and not by the caller, who under `vmap` cannot see values
            raise_for_info(info, _ZERO_PIVOT)
        LU, pivots, order, rank, is_suspect = canonical(LU, pivots)
        return (LU, pivots, info, order, rank, is_suspect), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        LU, _, _, order, rank, is_suspect = saved.outputs
        (cotangent,) = cotangents
        is_usual = not bool(is_suspect.any())
        is_in_range = _factors_are_in_safe_range(LU) and is_in_safe_range(cotangent)
        if not is_in_range:
            LU, cotangent, exponents = _normalize(LU, cotangent)
        if not is_usual:
            _refuse_undecided(rank)
            LU, cotangent = formula.extend(LU, rank), formula.mask_trailing(cotangent, rank)
        gradient = strategy.own("lu_backward", _backward, PackedLU(LU, order), cotangent)
        if not is_in_range:
            gradient = times_power_of_two(gradient, exponents)
        return (gradient if is_usual else _with_nan(gradient, rank),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        _, _, _, order, rank, _ = at.outputs
        near, cotangent = self._near(strategy, at), formula.mask_trailing(cotangents[0], rank)
        return (_with_nan(formula.permute_rows(near.backward(cotangent), order), rank),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        _, _, _, order, rank, _ = at.outputs
        rows = formula.permute_rows(only(tangents), order_of(order))
        result = formula.mask_trailing(self._near(strategy, at).jvp(rows), rank)
        return (_with_nan(result, rank),)

    def _near(self, strategy: Strategy, at: Saved) -> Near:
        LU, _, _, order, rank, _ = at.outputs
        LU, A = formula.extend(LU, rank), self.matrix(at)
        if A is None:
            return Near.of_factors(LU)
        rows = formula.permute_rows(A, order_of(order))
        return Near.of_matrix(LU, rows, _factored_by(strategy), rank)


def _factored_by(strategy: Strategy) -> Callable[[Tensor], Tensor]:
    """The packed factors, differentiable by themselves: those of an identity lose nothing by rounding."""
    return lambda matrix: run(_LUFactor(by_matrix=False), strategy, matrix)[0]


def _reverse(LU: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of the rows of A, smooth where it is differentiated itself."""
    if is_differentiated(LU, cotangent):
        return Near.of_factors(LU).backward(cotangent)
    return formula.backward(Triangular, LU, cotangent)


def _factors_are_in_safe_range(LU: Tensor) -> bool:
    """Whether the norm of each U is not far from one, by that of L and U and the largest pivots."""
    largest_pivots = LU.diagonal(dim1=-2, dim2=-1).abs().amax(-1) if LU.numel() else LU.real
    return is_in_safe_range(LU) and are_in_safe_range(largest_pivots)


def _normalize(LU: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Factors and cotangent without far powers of two, and that to be restored to the gradient.

    Of 2^e A the factors are L and 2^e U; so the gradient at A for (L̄, Ū) is 2^-e times that at 2^-e A
    for (L̄, 2^e Ū), and linear in those.
    """
    L, U, L_bar, U_bar = LU.tril(-1), LU.triu(), cotangent.tril(-1), cotangent.triu()
    of_U, of_L_bar, of_U_bar = (exponents(each) for each in (U, L_bar, U_bar))
    of_cotangent = torch.maximum(of_L_bar, of_U_bar + of_U)
    near = times_power_of_two(L_bar, -of_cotangent) + times_power_of_two(U_bar, of_U - of_cotangent)
    return L + times_power_of_two(U, -of_U), near, of_cotangent - of_U


def _with_nan(derivative: Tensor, rank: Tensor) -> Tensor:
    """NaN for the matrices that have no rank: of a `vmap` nobody can look whether there are any."""
    return derivative.masked_fill((rank < 0)[..., None, None], math.nan)


def _refuse_undecided(rank: Tensor) -> None:
    undecided = rank == UNDECIDED
    if bool(undecided.any()):
        batch = f" (batch index {int(undecided.flatten().nonzero()[0])})" if rank.ndim else ""
        raise LinAlgError(
            f"the rank is not determined{batch}: a pivot is no larger than rounding errors may make it, "
            "but what is left after the pivots before it is more than rounding errors. So the leading "
            "columns are linearly dependent, or the matrix is of lower rank, to working precision, "
            "and LU with row pivoting has no gradient that the matrix determines. A matrix changed by "
            "more than rounding errors has one; so has double precision, if that is not used yet; "
            "pinv and lstsq have gradients at any rank (strategy 'qr_pinv')"
        )


@traceable
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
        A: (..., m, n), float32, float64, complex64 or complex128.
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
    return run(_LUFactor(pivot, check_errors=True), chosen, A)[:2]


@with_normalized_cotangents
def _explicit_lu_factor(
    _: Strategy, __: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    LU, pivots = outputs
    order = inverse_order(pivots, LU.shape[-2])
    return (formula.permute_rows(_reverse(LU, *cotangents), order),)


def _lu_factor_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    LU, pivots = computed.outputs[:2]
    order = order_of(inverse_order(pivots, LU.shape[-2]))
    return (formula.jvp(Triangular, LU, formula.permute_rows(only(tangents), order)),)


_lu_factor_fast_path = FastPath(
    "lu_factor",
    _general_lu_factor,
    policy_operation="lu_factor",
    explicit=_explicit_lu_factor,
    tangents=_lu_factor_tangents,
    unread=(0,),
)
_lu_factor_ex_fast_path = dataclasses.replace(_lu_factor_fast_path, reports=True)
OPERATORS["lu_factor_ex"].use(
    _lu_factor_ex_fast_path, [True, ...], workspace=lambda m, _, __: (0, m)
)


@traceable
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
        torch.linalg.LinAlgError: a pivot is exactly zero and `check_errors` is set; or, in the
            backward, the rank is not determined.

    Example:
        >>> lu_factor_ex(torch.zeros(1, 1), strategy="triangular_solve").info
        tensor(1, dtype=torch.int32)
    """
    outputs = _lu_factor_ex_fast_path(strategy, A) if pivot else None
    if outputs is not None:
        return LUFactorExResult._make(outputs)
    (chosen,) = choose(strategy, "lu_factor", A)
    if chosen.forward_is_differentiable:
        return LUFactorExResult(
            *torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        )
    LU, pivots, info, *_ = run(_LUFactor(pivot, check_errors), chosen, A)
    return LUFactorExResult(LU, pivots, info)


@traceable
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
    LU, _, _, order, *_ = run(_LUFactor(pivot), chosen, A)
    m, n = A.shape[-2:]
    k = min(m, n)
    unit = torch.eye(m, k, dtype=A.dtype, device=A.device)
    L, U = LU.narrow(-1, 0, k).tril(-1) + unit, LU.narrow(-2, 0, k).triu()
    if not pivot:
        return A.new_empty(0), L, U
    identity = torch.eye(m, dtype=A.dtype, device=A.device)
    return identity[order], L, U


@with_normalized_cotangents
def _explicit_lu(_: Strategy, __: Gradients, outputs: Tensors, cotangents: Tensors) -> Tensors:
    P, L, U = outputs
    LU, of_LU = _packed(L, U), _packed(*cotangents)
    rows = _reverse(LU, of_LU)
    return (formula.permute_rows(rows, P.real.argmax(-1)),)


def _lu_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    P, L, U = computed.outputs
    rows = formula.permute_rows(only(tangents), P.real.argmax(-2))
    of_LU, k = formula.jvp(Triangular, _packed(L, U), rows), L.shape[-1]
    return P.new_zeros(P.shape), of_LU.narrow(-1, 0, k).tril(-1), of_LU.narrow(-2, 0, k).triu()


def _packed(L: Tensor, U: Tensor) -> Tensor:
    """The strict lower triangle of one and the upper triangle of the other in one matrix, (..., m, n)."""
    wider, higher = U.shape[-1] - L.shape[-1], L.shape[-2] - U.shape[-2]
    return pad(L.tril(-1), (0, wider)) + pad(U.triu(), (0, 0, 0, higher))


_lu_fast_path = FastPath(
    "lu",
    _general_lu,
    policy_operation="lu_factor",
    explicit=_explicit_lu,
    tangents=_lu_tangents,
    unread=(0,),
)
ATEN = (
    AtenCalls("linalg_lu_factor", _lu_factor_fast_path, [True], returned=(0, 1)),
    AtenCalls("linalg_lu_factor_ex", _lu_factor_ex_fast_path, [True, ...], returned=(0, 1, 2)),
    AtenCalls("linalg_lu", _lu_fast_path, [True], returned=(0, 1, 2)),
)


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.lu import lu_gradient

    problem.check_rank()
    matrix, cotangent = problem.operands
    return (lu_gradient(matrix, cotangent, cotangent, problem.rank, problem.order),)


def _exact_unpacked(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.lu import lu_gradient

    problem.check_rank()
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
        policy_operation="lu_factor",
        amplification=lu_amplification,
    ),
)
