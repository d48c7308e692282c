"""How wrong a result is: one definition for tests, benchmarks, conformance checks and figures.

Norms are Frobenius norms unless said, taken in double precision whatever the tested dtype.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.accuracy.reference import gradient, lu_gradient_at_factors

PASS_BELOW = 30.0
"""The error ratio from which LAPACK's test programs report a failure (LAPACK Working Note 41)."""


class MoorePenrose(NamedTuple):
    """The four Penrose residuals of X as the pseudoinverse of A, each a tensor of shape (...).

    Attributes:
        inner: ‖AXA − A‖ / (‖A‖²‖X‖).
        outer: ‖XAX − X‖ / (‖X‖²‖A‖).
        range_symmetry: ‖AX − (AX)ᴴ‖ / (‖A‖‖X‖).
        corange_symmetry: ‖XA − (XA)ᴴ‖ / (‖A‖‖X‖).
    """

    inner: Tensor
    outer: Tensor
    range_symmetry: Tensor
    corange_symmetry: Tensor


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return u, half the distance from 1 to the next number: 2⁻²⁴ or 2⁻⁵³.

    Example:
        >>> unit_roundoff(torch.complex64) == 2**-24
        True
    """
    return torch.finfo(dtype).eps / 2


def gradient_error(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    computed: Sequence[Tensor],
    *,
    rank: int | None = None,
    pivots: Tensor | None = None,
) -> float:
    """Return the largest ‖computed − exact‖ / ‖exact‖ over inputs and batch.

    Args:
        operation: with `inputs`, `cotangents`, `rank` and `pivots` as in
            `strategies.accuracy.gradient`.
        inputs: see `operation`.
        cotangents: see `operation`.
        computed: the gradients to judge, one for each input.
        rank: see `operation`.
        pivots: see `operation`.
    """
    exact = gradient(operation, inputs, cotangents, rank=rank, pivots=pivots)
    return exact.relative_error(computed)


def added_error(
    LU: Tensor, pivots: Tensor, cotangent: Tensor, computed: Tensor, *, rank: int | None = None
) -> float:
    """Return the error that an LU backward adds itself, the factorization's apart.

    Args:
        LU: (..., m, n) the packed factors that the backward was given.
        pivots: (..., min(m, n)) their pivots.
        cotangent: (..., m, n) of the packed factors.
        computed: (..., m, n) the gradient to judge.
        rank: as in `strategies.accuracy.lu_gradient_at_factors`.
    """
    return lu_gradient_at_factors(LU, pivots, cotangent, rank=rank).relative_error((computed,))


def error_ratio(error: Tensor | float, amplification: Tensor | float, dtype: torch.dtype) -> float:
    """Return the largest error / (amplification · u): below `PASS_BELOW` is as good as can be.

    Args:
        error: relative errors, (...) or one number.
        amplification: by how much the problem magnifies a rounding error: the condition number
            or what the function `amplification` returns, of matching shape.
        dtype: the dtype that was tested.

    Example:
        >>> error_ratio(2**-20, 16.0, torch.float32)
        1.0
    """
    ratios = torch.as_tensor(error, dtype=torch.float64) / (
        torch.as_tensor(amplification, dtype=torch.float64) * unit_roundoff(dtype)
    )
    return float(ratios.nan_to_num(nan=math.inf, posinf=math.inf).max()) if ratios.numel() else 0.0


def condition_number(matrix: Tensor, rank: int | None = None) -> Tensor:
    """Return σ₁/σ_r of each matrix, (...), from singular values in double precision.

    Above 10¹⁵ the value is only a lower estimate: a matrix of the gallery knows better.
    """
    singular = torch.linalg.svdvals(_normalized(matrix)[0])
    if rank is not None:
        singular = singular[..., :rank]
    if singular.shape[-1] == 0:
        return torch.ones(matrix.shape[:-2], dtype=torch.float64)
    condition: Tensor = singular[..., 0] / singular[..., -1]
    return condition


def amplification(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    rank: int | None = None,
) -> Tensor:
    """Return by how much a gradient magnifies rounding errors of size u, first order, (...).

    - solve, inv, det, slogdet: κ₂(A) (Higham, *Accuracy and Stability of Numerical Algorithms*,
      2nd ed. 2002, theorem 7.2 and section 14.1).
    - pinv: κ₂(A) = σ₁/σ_r (Wedin 1973, BIT 13, theorem 4.1: ‖δA⁺‖ ≤ √2 ‖A⁺‖²‖δA‖).
    - lstsq: Wedin's bounds put through Ā = −ZXᴴ + R wᴴ, see `_lstsq_amplification`: about κ₂,
      up to κ₂² where a large residual meets a cotangent that hides it.
    - lu, lu_factor: the rounding errors of elimination put through both factors, see
      `lu_amplification`. Unlike κ₂ it does not change when columns of A are scaled.

    Being first order it says nothing once amplification·u exceeds about 1/100.

    Args:
        operation: a name of `strategies.accuracy.OPERATIONS`.
        inputs: as for `strategies.accuracy.gradient`.
        cotangents: likewise.
        rank: the exact rank; None means full.
    """
    matrix = inputs[0]
    if operation in ("lu", "lu_factor"):
        return lu_amplification(matrix, rank=rank)
    if operation == "lstsq":
        return _lstsq_amplification(matrix, inputs[1], cotangents[0], rank)
    return condition_number(matrix, rank)


def lu_amplification(matrix: Tensor, *, rank: int | None = None) -> Tensor:
    """Return √(1ᵀ |L⁻¹|² |L|² |U|² |U⁻¹|² 1 / r), squares elementwise, of each matrix, (...).

    The computed factors are exact for PᵀA + E with |E| ≤ c·u |L||U| (Higham 2002, theorem 9.3),
    and with F = L⁻¹EU⁻¹ they move by L·tril₋₁(F) and triu(F)·U (Stewart 1997, *On the
    perturbation of LU and Cholesky factors*); the gradient moves with them. The worst case,
    ‖|L⁻¹||L||U||U⁻¹|‖, overshoots by orders of magnitude. With rounding errors of random sign
    (Higham & Mary 2019) the entries of E have the variance u²(|L|²|U|²)ᵢⱼ and ‖F‖_F/√r
    has this root mean square: observed errors of random matrices are 0.3 to 3 times it,
    whatever the size, shape and conditioning.

    Args:
        matrix: A, (..., m, n); L and U are those of its leading r columns and pivoted rows.
        rank: r; None means min(m, n).
    """
    lower, upper = _leading_factors(_normalized(matrix)[0], rank)
    size = lower.shape[-1]
    if size == 0:
        return torch.ones(matrix.shape[:-2], dtype=torch.float64)
    eye = torch.eye(size, dtype=lower.dtype)
    lower_inverse = torch.linalg.solve_triangular(lower, eye, upper=False, unitriangular=True)
    upper_inverse = torch.linalg.solve_triangular(upper, eye, upper=True)
    sums = torch.ones(size, 1, dtype=torch.float64)
    for factor in (upper_inverse, upper, lower, lower_inverse):
        sums = factor.abs().square() @ sums
    return (sums.sum((-2, -1)) / size).sqrt().nan_to_num(nan=math.inf, posinf=math.inf)


def penrose_residuals(matrix: Tensor, pseudo_inverse: Tensor) -> MoorePenrose:
    """Return the four Penrose residuals; a stable pseudoinverse has them below c·κ·u.

    No m×m or n×n array is formed for the long side: AX − (AX)ᴴ = [A, −Xᴴ][Xᴴ, A]ᴴ has the norm
    of the product of the two triangular factors of the brackets.

    Args:
        matrix: A, (..., m, n).
        pseudo_inverse: X, (..., n, m).

    Example:
        >>> A = torch.tensor([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
        >>> all(residual < 1e-15 for residual in penrose_residuals(A, torch.linalg.pinv(A)))
        True
    """
    # The residuals are homogeneous: with a and x of norm one, AXA − A becomes a x a − a/(‖A‖‖X‖).
    (a, a_power), (x, x_power) = _normalized(matrix), _normalized(pseudo_inverse)
    inverse_scale = torch.ldexp(1 / (_norm(a) * _norm(x)), -(a_power + x_power))[..., None, None]
    a, x = a / _positive(_norm(a))[..., None, None], x / _positive(_norm(x))[..., None, None]
    return MoorePenrose(
        _norm(a @ (x @ a) - torch.where(a == 0, 0, a * inverse_scale)),
        _norm(x @ (a @ x) - torch.where(x == 0, 0, x * inverse_scale)),
        _skew_norm(a, x),
        _skew_norm(x, a),
    )


def adjoint_defect(
    cotangents: Sequence[Tensor],
    output_tangents: Sequence[Tensor],
    gradients: Sequence[Tensor],
    input_tangents: Sequence[Tensor],
) -> float:
    """Return how far ⟨G, JVP(E)⟩ and ⟨VJP(G), E⟩ are apart, relative to ‖G‖‖JVP‖ + ‖VJP‖‖E‖.

    ⟨a, b⟩ is Re Σ conj(a) b, PyTorch's convention. No reference is needed, and any size will do.

    Args:
        cotangents: G, one for each output.
        output_tangents: JVP(E), one for each output.
        gradients: VJP(G), one for each input.
        input_tangents: E, one for each input.
    """
    forward = _inner(cotangents, output_tangents)
    backward = _inner(gradients, input_tangents)
    scale = _total_norm(cotangents) * _total_norm(output_tangents)
    scale += _total_norm(gradients) * _total_norm(input_tangents)
    difference = abs(forward - backward)
    return difference / scale if difference else 0.0


def _double(tensor: Tensor) -> Tensor:
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().cpu().to(wide)


def _normalized(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Bring the largest entry of each matrix near one; return the power of two taken out."""
    wide = _double(matrix)
    if wide.numel() == 0:
        return wide, torch.zeros(wide.shape[:-2], dtype=torch.int32)
    exponent = torch.frexp(torch.view_as_real(wide + 0j).abs().amax((-3, -2, -1)))[1]
    # In two halves: 2^1074, which the smallest number needs, is not itself a double.
    half = exponent // 2
    for power in (half, exponent - half):
        wide = wide * torch.exp2(-power.double())[..., None, None]
    return wide, exponent


def _positive(norm: Tensor) -> Tensor:
    return torch.where(norm > 0, norm, 1.0)


def _norm(matrix: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.matrix_norm(_double(matrix))
    return norm


def _skew_norm(a: Tensor, x: Tensor) -> Tensor:
    """Return ‖AX − (AX)ᴴ‖."""
    left = torch.linalg.qr(torch.cat([a, -x.mH], -1), mode="r").R
    right = torch.linalg.qr(torch.cat([x.mH, a], -1), mode="r").R
    return _norm(left @ right.mH)


def _leading_factors(matrix: Tensor, rank: int | None) -> tuple[Tensor, Tensor]:
    r = min(matrix.shape[-2:]) if rank is None else rank
    packed = torch.linalg.lu_factor_ex(matrix)[0][..., :r, :r]
    eye = torch.eye(r, dtype=matrix.dtype)
    return packed.tril(-1) + eye, packed.triu()


def _lstsq_amplification(
    matrix: Tensor, rhs: Tensor, cotangent: Tensor, rank: int | None
) -> Tensor:
    """Bound the relative change of Ā for ‖δA‖ = u‖A‖, as a multiple of u.

    To first order X, Z = A⁺ᴴG and R change by at most ‖A⁺‖(‖X‖ + ‖A⁺‖‖R‖), 2‖A⁺‖‖Z‖ and
    ‖X‖ + ‖A⁺‖‖R‖ times ‖δA‖ (Wedin 1973, section 5), and w = A⁺Z by at most 3‖A⁺‖²‖Z‖. Since
    ‖w‖ ≤ ‖A⁺‖‖Z‖, Ā = −ZXᴴ + Rwᴴ changes by about κ₂·‖Z‖(‖X‖ + ‖A⁺‖‖R‖) u, relative to
    ‖Ā‖. B̄ = Z has the plain κ₂.
    """
    a, b, g = (_double(t) for t in (matrix, rhs, cotangent))
    if rhs.ndim == matrix.ndim - 1:
        b, g = b[..., None], g[..., None]
    condition = condition_number(a, rank)
    if a.numel() == 0 or rank == 0:
        return condition
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    r = s.shape[-1] if rank is None else rank
    u, s, vh = u[..., :r], s[..., :r, None], vh[..., :r, :]
    x = vh.mH @ (u.mH @ b / s)
    z = u @ (vh @ g / s)
    w = vh.mH @ (u.mH @ z / s)
    residual = b - a @ x
    null = g - vh.mH @ (vh @ g)
    a_bar = residual @ w.mH - z @ x.mH + (u @ (vh @ x / s)) @ null.mH
    spread = _norm(z) * (_norm(x) + _norm(residual) / s[..., -1, 0])
    growth = (spread / _norm(a_bar)).nan_to_num(nan=1.0, posinf=1.0).clamp(min=1.0)
    amplified: Tensor = condition * growth
    return amplified


def _inner(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    pairs = zip(left, right, strict=True)
    return float(sum((_double(a).conj() * _double(b)).real.sum() for a, b in pairs))


def _total_norm(tensors: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(_double(t).abs().square().sum()) for t in tensors))
