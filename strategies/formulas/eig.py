"""A V = V diag(λ) of a general matrix with distinct eigenvalues, the columns of V of length one.

With P = V⁻¹dA V and E_ij = λ_j − λ_i off the diagonal

    dλ = diag P        dV = X − V diag(Re diag(VᴴX)),   X = V (P / E)

(P / E is zero on the diagonal), and with W = V̄ − V diag(Re diag(VᴴV̄))

    Ā = V⁻ᴴ [diag(λ̄) + (VᴴW) / conj(E)] Vᴴ        (Boeddeker et al., arXiv 1701.00392, 2017).

The phase of each eigenvector is arbitrary: only a loss with Im diag(VᴴV̄) = 0 is one of the eigenvectors.
"""

import torch
from torch import Tensor

from strategies.factors.elimination import solve


def column_products(V: Tensor, other: Tensor) -> Tensor:
    """Diag(Vᴴ other), (..., n): of V̄ its imaginary part is the derivative by the phases."""
    return (V.conj() * other).sum(-2)


def right_factor(
    values: Tensor, V: Tensor, values_bar: Tensor, V_bar: Tensor, products: Tensor
) -> Tensor:
    """Vᴴ Ā, (..., n, n), of which V⁻ᴴ makes the gradient; `products` are the column products of V̄."""
    within = V_bar - V * products.real.unsqueeze(-2)
    quotient = (V.mH @ within) / _gaps(values).conj()
    change = values_bar - quotient.diagonal(dim1=-2, dim2=-1)
    return (quotient + torch.diag_embed(change)) @ V.mH


def jvp(values: Tensor, V: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of the eigenvalues, (..., n), and of V, (..., n, n)."""
    P = solve(V, tangent @ V)
    quotient = P / _gaps(values)
    X = V @ (quotient - torch.diag_embed(quotient.diagonal(dim1=-2, dim2=-1)))
    return P.diagonal(dim1=-2, dim2=-1), X - V * column_products(V, X).real.unsqueeze(-2)


def _gaps(values: Tensor) -> Tensor:
    """λ_j − λ_i, one on the diagonal."""
    identity = torch.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    return values.unsqueeze(-2) - values.unsqueeze(-1) + identity
