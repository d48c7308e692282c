"""The determinant from packed LU factors, and what else there is to know before dividing by them.

A **negligible** pivot is at most √ε times its row and its column, as large as elimination makes them:
a second derivative divides by it twice. A matrix is **hard** if the factors do not give the gradient of
its determinant, and there is more to do (`strategies.factors.diagonalized`). Pivots that are roundoff are
none of that: the factors are exact for a matrix nearby, and so is what substitution makes of its adjugate.

- `FACTORS_ARE_USELESS`: a pivot is zero; or an entry or pivot is so large or small that the inverse
  may leave the range of the dtype; or elimination has grown. The factors are exact for a matrix that
  differs from A by roundoff of |L||U| (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
  ed., Theorem 9.3). With partial pivoting that is small beside the columns of A but for rare growth,
  yet not beside its rows if these are scaled badly (section 9.8 there). With columns scaled to a
  largest entry of one, a row of |L||U| may have 32 + n times the largest entry of that row of A: Gaussian
  matrices of 128×128 have up to 20 times, random orthogonal ones n/2 times, and larger errors.
- `NOT_FINITE`: an entry is infinite or NaN.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.pivots import inverse_order
from strategies.formulas import det as formula
from strategies.formulas.powers_of_two import product, times_power_of_two
from strategies.kernels.cpu import calls

FACTORS_ARE_USELESS, NOT_FINITE = 1, 2
"""Both known to `csrc/include/determinant.hpp`, too."""


class Determinant(NamedTuple):
    """What `determinant` returns.

    Attributes:
        mantissa: det A = mantissa · 2^exponent, (...).
        notes: int64, (..., 3): that exponent, which is zero unless the product of some of the pivots
            is near an end of the range; the number of negligible pivots; how hard A is, zero if not.
        inverse_order: row i of A is row `inverse_order[i]` of L U, int64 (..., n).
    """

    mantissa: Tensor
    notes: Tensor
    inverse_order: Tensor


def determinant(A: Tensor, LU: Tensor, pivots: Tensor) -> Determinant:
    """Det A, (..., n, n), from its packed factors, with notes on how much these are worth."""
    found = calls.determinant(A, LU, pivots)
    if found is not NotImplemented:
        return Determinant(*found)
    order = inverse_order(pivots, LU.shape[-1])
    if LU.numel() == 0:
        one, notes = LU.new_ones(LU.shape[:-2]), order.new_zeros(*LU.shape[:-2], 3)
        return Determinant(one, notes, order)
    mantissa, exponent = product(LU.diagonal(dim1=-2, dim2=-1))
    det = times_power_of_two(mantissa, exponent)
    is_far = ~((_modulus(det) < _far(det)) & (_modulus(det) > 1 / _far(det)))
    exponent = torch.where(is_far, exponent, 0)
    mantissa = torch.where(is_far, mantissa, det) * formula.permutation_sign(LU, pivots)
    negligible, difficulty = _difficulty(A, LU, order)
    notes = torch.stack([exponent.long(), negligible, difficulty], -1)
    return Determinant(mantissa, notes, order)


def _far(like: Tensor) -> float:
    """A power of two whose square is in range."""
    return 2.0**500 if torch.finfo(like.dtype).eps < 1e-10 else 2.0**52


def _modulus(x: Tensor) -> Tensor:
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


def _difficulty(A: Tensor, LU: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """The number of negligible pivots, and how hard a matrix is: int64 (...) both."""
    far, small = _far(LU), torch.finfo(LU.dtype).eps ** 0.5
    sizes, factors = _modulus(A), _modulus(LU)
    columns, largest = sizes.amax(-2), sizes.amax((-2, -1))
    scale = torch.where(columns > 0, 1 / columns, 0).unsqueeze(-2)
    rows = (factors.triu() * scale).amax(-1)
    terms = torch.maximum(rows, (factors.tril(-1) * rows.unsqueeze(-2)).amax(-1))
    pivots = factors.diagonal(dim1=-2, dim2=-1)
    negligible = (pivots <= small * terms * columns).sum(-1)
    has_grown = terms.gather(-1, order) > (32 + LU.shape[-1]) * (sizes * scale).amax(-1)
    is_far = (pivots < 1 / far) | (pivots > far)
    is_useless = (largest > far) | (is_far | has_grown).any(-1)
    difficulty = is_useless * FACTORS_ARE_USELESS
    is_finite = A.isfinite().all(-1).all(-1)
    return negligible * is_finite, torch.where(is_finite, difficulty, NOT_FINITE)
