"""The rule of LU: what is computed, and its derivatives, at any rank that roundoff does not leave open."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.quadratic import pull, push
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import LinAlgError, raise_for_info
from strategies.factors import PackedLU
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.lu_rank import UNDECIDED, canonical
from strategies.factors.pivots import order_of
from strategies.formulas import lu as formula
from strategies.formulas.matrices import nan_where
from strategies.operations.scaled_rule import (
    are_in_safe_range,
    exponents,
    is_in_safe_range,
    times_power_of_two,
)
from strategies.strategy import Saved, Strategy

_ZERO_PIVOT = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want "
    "to perform the factorization, consider calling linalg.lu or linalg.lu_factor_ex"
)


EQUATION = formula.Equation()


def _backward(strategy: Strategy, factors: PackedLU, cotangent: Tensor) -> Tensor:
    rows = formula.backward(strategy.factor_triangular, factors.LU, cotangent)
    return formula.permute_rows(rows, factors.inverse_order)


@dataclass(frozen=True)
class LUFactor(Rule):
    """Outputs: packed LU, LAPACK pivots, info, inverse row order, rank, whether that was in doubt."""

    name = "lu_factor"
    unread_inputs = (0,)

    pivot: bool = True
    check_errors: bool = False

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, pivots, info = lu_factor_ex(inputs[0], pivot=self.pivot)
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
        return (gradient if is_usual else nan_where(rank < 0, gradient),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        LU, _, _, order, rank, _ = at.outputs
        cotangent = formula.mask_trailing(cotangents[0], rank)
        rows = pull(EQUATION, formula.extend(LU, rank), cotangent)
        return (nan_where(rank < 0, formula.permute_rows(rows, order)),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        LU, _, _, order, rank, _ = at.outputs
        rows = formula.permute_rows(only(tangents), order_of(order))
        result = push(EQUATION, formula.extend(LU, rank), rows)
        return (nan_where(rank < 0, formula.mask_trailing(result, rank)),)


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
