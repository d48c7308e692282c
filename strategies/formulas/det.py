"""det A and log|det A| from the factors PᵀA = L U of a square A.

    d det A = tr(adj(A) dA)                    Ā = ḡ · conj(det A) · A⁻ᴴ = ḡ · adj(A)ᴴ
    d log det A = tr(A⁻¹ dA)                   Ā = (ḡ + i Im(s̄ conj(s))) · A⁻ᴴ

for det, and for (s, log|det A|) = slogdet with cotangents (s̄, ḡ): log|det| is the real part of the
logarithm and s = exp(i θ) turns with its imaginary part (Giles 2008, section 2.2.4).

The adjugate is a polynomial in A and finite where A⁻¹ is not: `strategies.factors.diagonalized`.
"""

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Structure
from strategies.formulas.lu import Factor, permute_rows


def permutation_sign(LU: Tensor, pivots: Tensor) -> Tensor:
    """The determinant of P, of the dtype of the factors: (...)."""
    positions = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    swaps = (pivots != positions).sum(-1)
    return (1 - 2 * (swaps % 2)).to(LU.dtype)


def inverse_adjoint(factor: Factor, LU: Tensor, inverse_order: Tensor) -> Tensor:
    """A⁻ᴴ = P L⁻ᴴ U⁻ᴴ from packed factors with no zero pivot: (..., n, n)."""
    n = LU.shape[-1]
    identity = torch.eye(n, dtype=LU.dtype, device=LU.device).expand(LU.shape)
    upper = factor(LU, Structure.UPPER).apply_adjoint(identity)
    return permute_rows(factor(LU, Structure.UNIT_LOWER).apply_adjoint(upper), inverse_order)


def cofactors(matrix: Tensor) -> Tensor:
    """The derivatives of the determinant of matrices up to 3×3 by their entries, (..., n, n).

    Example:
        >>> cofactors(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[4.0, -3.0], [-2.0, 1.0]]
    """
    n = matrix.shape[-1]
    if n < 2:
        return torch.ones_like(matrix)
    if n == 2:
        signs = torch.tensor([[1, -1], [-1, 1]], dtype=matrix.dtype, device=matrix.device)
        return matrix.flip(-2, -1) * signs
    return torch.linalg.cross(matrix.roll(-1, -2), matrix.roll(-2, -2))


def cofactors_along(matrix: Tensor, direction: Tensor) -> Tensor:
    """The derivative of `cofactors` along a direction, (..., n, n).

    Example:
        >>> cofactors_along(torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[4.0, -3.0], [-2.0, 1.0]]
    """
    if matrix.shape[-1] < 2:
        return torch.zeros_like(matrix)
    if matrix.shape[-1] == 2:
        return cofactors(direction)
    cross = torch.linalg.cross
    of_first = cross(direction.roll(-1, -2), matrix.roll(-2, -2))
    return of_first + cross(matrix.roll(-1, -2), direction.roll(-2, -2))


def slogdet_scale(sign: Tensor, sign_cotangent: Tensor, log_cotangent: Tensor) -> Tensor:
    """What multiplies A⁻ᴴ in the gradient of slogdet: (...)."""
    if not sign.is_complex():
        return log_cotangent
    return log_cotangent + _imaginary_unit(sign) * (sign_cotangent * sign.conj()).imag


def slogdet_tangents(sign: Tensor, trace: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of the sign and of log|det A| from tr(A⁻¹ dA), all (...)."""
    if not sign.is_complex():
        return torch.zeros_like(sign), trace
    return _imaginary_unit(sign) * trace.imag * sign, trace.real


def _imaginary_unit(like: Tensor) -> Tensor:
    # With the number 1j torch makes double precision of the zeros without memory of forward mode.
    return torch.tensor(1j, dtype=like.dtype, device=like.device)
