"""By how much a gradient magnifies rounding errors, to first order in the unit roundoff u.

An error is judged as a multiple of amplification · u. u is half the distance from 1 to the next
floating-point number. The condition number κ = σ₁/σ_r, the largest singular value over the smallest
that counts, is the amplification of most operations. To first order, none of this says anything once
amplification · u exceeds about 1/100.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Amplification = Callable[[Sequence[Tensor], Sequence[Tensor], int | None], Tensor]
"""From the inputs, the cotangents and the exact rank (None: full): one number a matrix, (...)."""


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return u: 2⁻²⁴ for float32, 2⁻⁵³ for float64, complex or not, 2⁻¹¹ for float16, 2⁻⁸ for bfloat16."""
    return torch.finfo(dtype).eps / 2


def condition_number(matrix: Tensor, rank: int | None = None) -> Tensor:
    """Return κ = σ₁/σ_r of each matrix, (...), from singular values in double precision.

    It is the amplification of most operations: for square systems, inverses and determinants see
    Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed. 2002, theorem 7.2 and section
    14.1; for the pseudoinverse Wedin 1973 (BIT 13), theorem 4.1, ‖δA⁺‖ ≤ √2 ‖A⁺‖²‖δA‖. A rank of
    None means min(m, n). Above 10¹⁵ the value is only a lower estimate; the gallery knows better
    about its matrices.

    Example:
        >>> condition_number(torch.diag(torch.tensor([8.0, 2.0])))
        tensor(4., dtype=torch.float64)
    """
    singular = torch.linalg.svdvals(normalized(matrix)[0])[..., :rank]
    if singular.shape[-1] == 0:
        return torch.ones(matrix.shape[:-2], dtype=torch.float64)
    return singular[..., 0] / singular[..., -1]


def squared_condition_number(
    inputs: Sequence[Tensor], _cotangents: Sequence[Tensor], rank: int | None
) -> Tensor:
    """Return κ², of what is computed from a Cholesky factor L: that is the condition number of L Lᴴ."""
    return condition_number(inputs[0], rank).square()


def lu_amplification(
    inputs: Sequence[Tensor], _cotangents: Sequence[Tensor], rank: int | None
) -> Tensor:
    """Return √(1ᵀ |L⁻¹|² |L|² |U|² |U⁻¹|² 1 / r), squares elementwise, of each matrix, (...).

    L and U are the leading r columns and rows of the factors. The computed factors are exact for
    PᵀA + E with |E| ≤ c·u |L||U| (Higham 2002, theorem 9.3), and with F = L⁻¹EU⁻¹ they move by
    L·tril₋₁(F) and triu(F)·U (Stewart 1997, *On the perturbation of LU and Cholesky factors*);
    the gradient moves with them. The worst case, ‖|L⁻¹||L||U||U⁻¹|‖, overshoots by orders of
    magnitude. With rounding errors of random sign (Higham & Mary 2019) the entries of E have the
    variance u²(|L|²|U|²)ᵢⱼ and ‖F‖_F/√r has this root mean square: observed errors of random
    matrices are 0.3 to 3 times it, whatever the size, shape and conditioning. Unlike κ it does
    not change when columns of A are scaled.
    """
    matrix = inputs[0]
    size = min(matrix.shape[-2:]) if rank is None else rank
    if size == 0:
        return torch.ones(matrix.shape[:-2], dtype=torch.float64)
    packed = torch.linalg.lu_factor_ex(normalized(matrix)[0])[0][..., :size, :size]
    eye = torch.eye(size, dtype=packed.dtype)
    lower, upper = packed.tril(-1) + eye, packed.triu()
    lower_inverse = torch.linalg.solve_triangular(lower, eye, upper=False, unitriangular=True)
    upper_inverse = torch.linalg.solve_triangular(upper, eye, upper=True)
    sums = torch.ones(size, 1, dtype=torch.float64)
    for factor in (upper_inverse, upper, lower, lower_inverse):
        sums = factor.abs().square() @ sums
    return (sums.sum((-2, -1)) / size).sqrt().nan_to_num(nan=math.inf, posinf=math.inf)


def lstsq_amplification(
    inputs: Sequence[Tensor], cotangents: Sequence[Tensor], rank: int | None
) -> Tensor:
    """Return the relative change of Ā for ‖δA‖ = u‖A‖, as a multiple of u, of each matrix, (...).

    To first order X, Z = A⁺ᴴG and R change by at most ‖A⁺‖(‖X‖ + ‖A⁺‖‖R‖), 2‖A⁺‖‖Z‖ and
    ‖X‖ + ‖A⁺‖‖R‖ times ‖δA‖ (Wedin 1973, section 5), and w = A⁺Z by at most 3‖A⁺‖²‖Z‖. Since
    ‖w‖ ≤ ‖A⁺‖‖Z‖, Ā = −ZXᴴ + Rwᴴ changes by about κ·‖Z‖(‖X‖ + ‖A⁺‖‖R‖) u, relative to ‖Ā‖: about
    κ u, up to κ² u where a large residual meets a cotangent that hides it. B̄ = Z has the plain κ.
    """
    matrix, rhs, cotangent = (_double(t) for t in (*inputs, *cotangents))
    condition = condition_number(matrix, rank)
    if matrix.numel() == 0 or rank == 0:
        return condition
    if rhs.ndim == matrix.ndim - 1:
        rhs, cotangent = rhs[..., None], cotangent[..., None]
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    u, s, vh = u[..., :rank], s[..., :rank, None], vh[..., :rank, :]
    x = vh.mH @ (u.mH @ rhs / s)
    z = u @ (vh @ cotangent / s)
    w = vh.mH @ (u.mH @ z / s)
    residual = rhs - matrix @ x
    null = cotangent - vh.mH @ (vh @ cotangent)
    gradient = residual @ w.mH - z @ x.mH + (u @ (vh @ x / s)) @ null.mH
    norm = torch.linalg.matrix_norm
    spread = norm(z) * (norm(x) + norm(residual) / s[..., -1, 0])
    growth = (spread / norm(gradient)).nan_to_num(nan=1.0, posinf=1.0).clamp(min=1.0)
    return condition * growth


def normalized(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Bring the largest entry of each matrix near one, in double precision on the CPU.

    Returned beside is the power of two taken out of each, int32 (...).
    """
    wide = _double(matrix)
    if wide.numel() == 0:
        return wide, torch.zeros(wide.shape[:-2], dtype=torch.int32)
    exponent = torch.frexp(torch.view_as_real(wide + 0j).abs().amax((-3, -2, -1)))[1]
    # In two halves: 2^1074, which the smallest number needs, is not itself a double.
    half = exponent // 2
    for power in (half, exponent - half):
        wide = wide * torch.exp2(-power.double())[..., None, None]
    return wide, exponent


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)
