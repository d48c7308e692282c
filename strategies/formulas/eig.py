"""A V = V diag(λ) of a general matrix with distinct eigenvalues, the columns of V of length one.

With P = V⁻¹dA V and E_ij = λ_j − λ_i off the diagonal

    dλ = diag P        dV = X − V diag(Re diag(VᴴX)),   X = V (P / E)

(P / E is zero on the diagonal), and with W = V̄ − V diag(Re diag(VᴴV̄))

    Ā = V⁻ᴴ [diag(λ̄) + (VᴴW) / conj(E)] Vᴴ        (Boeddeker et al., arXiv 1701.00392, 2017).

The phase of each eigenvector is arbitrary: only a loss with Im diag(VᴴV̄) = 0 is one of the eigenvectors.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["jvp", "phase_derivatives", "right_factor"]


def phase_derivatives(V: Tensor, V_bar: Tensor) -> Tensor:
    """The derivative of the loss by the phase of each eigenvector, (..., n)."""
    return _products(V, V_bar).imag


def right_factor(values: Tensor, V: Tensor, values_bar: Tensor, V_bar: Tensor) -> Tensor:
    """Vᴴ Ā, (..., n, n), of which V⁻ᴴ makes the gradient."""
    within = V_bar - V * _products(V, V_bar).real.unsqueeze(-2)
    middle = (V.mH @ within) * _reciprocal_gaps(values).conj()
    return (middle + torch.diag_embed(values_bar)) @ V.mH


def jvp(values: Tensor, V: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of the eigenvalues, (..., n), and of V, (..., n, n)."""
    P = torch.linalg.solve(V, tangent @ V)
    X = V @ (P * _reciprocal_gaps(values))
    return P.diagonal(dim1=-2, dim2=-1), X - V * _products(V, X).real.unsqueeze(-2)


def _products(V: Tensor, other: Tensor) -> Tensor:
    """Diag(Vᴴ other)."""
    return (V.conj() * other).sum(-2)


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """1 / (λ_j − λ_i), zero on the diagonal."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    identity = torch.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    return (gaps + identity).reciprocal() - identity
