"""Q of a QR factorization, from the reflectors in which LAPACK and cuSOLVER leave it.

On the CPU and of single matrices that is done by their own routines. On CUDA these go through a batch one
matrix after the other. There Q = H₁ … H_n, H_i = I − τ_i v_i v_iᴴ, is taken as I − V T Vᴴ with

    T⁻¹ = diag(1/τ) + the strict upper triangle of VᴴV

(Puglisi, "Modification of the Householder method based on the compact WY representation", 1992; Joffrain,
Low, Quintana-Ortí, van de Geijn & Van Zee, "Accumulating Householder transformations, revisited", 2006),
in products and solves of the whole batch.
"""

import torch
from torch import Tensor


def qr(A: Tensor) -> tuple[Tensor, Tensor]:
    """The reduced QR factorization of A, (..., m, n) with m ≥ n."""
    if not is_batch_on_cuda(A):
        Q, R = torch.linalg.qr(A)
        return Q, R
    reflectors, scales = torch.geqrf(A)
    # The device makes NaN of complex entries whose squares underflow; LAPACK scales them.
    if not bool(reflectors.isfinite().all() & scales.isfinite().all()):
        Q, R = torch.linalg.qr(A.cpu())
        return Q.to(A.device), R.to(A.device)
    return basis(reflectors, scales), reflectors[..., : A.shape[-1], :].triu()


def basis(reflectors: Tensor, scales: Tensor) -> Tensor:
    """The first n columns of Q, (..., m, n)."""
    if not is_batch_on_cuda(reflectors):
        return torch.linalg.householder_product(reflectors, scales)
    n = reflectors.shape[-1]
    V, T_inverse = _compact(reflectors, scales)
    Q = -V @ torch.linalg.solve_triangular(T_inverse, V[..., :n, :].mH, upper=True)
    Q.diagonal(dim1=-2, dim2=-1).add_(1)
    return Q


def apply(reflectors: Tensor, scales: Tensor, x: Tensor, *, adjoint: bool = False) -> Tensor:
    """Q x, or Qᴴ x, (..., m, k)."""
    if not is_batch_on_cuda(reflectors):
        return torch.ormqr(reflectors, scales, x, transpose=adjoint)
    V, T_inverse = _compact(reflectors, scales)
    triangle = T_inverse.mH if adjoint else T_inverse
    return x - V @ torch.linalg.solve_triangular(triangle, V.mH @ x, upper=not adjoint)


def is_batch_on_cuda(matrices: Tensor) -> bool:
    """Whether Q is taken in products and solves."""
    return matrices.is_cuda and matrices.ndim > 2 and matrices.numel() > 0


def _compact(reflectors: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    """V and the inverse of T; a column that is not reflected has no part in them."""
    m, n = reflectors.shape[-2:]
    identity = torch.eye(m, n, dtype=reflectors.dtype, device=reflectors.device)
    is_reflected = scales != 0
    V = (reflectors.tril(-1) + identity) * is_reflected.unsqueeze(-2)
    T_inverse = (V.mH @ V).triu(1)
    reciprocals = torch.where(is_reflected, 1 / torch.where(is_reflected, scales, 1), 1)
    return V, T_inverse + torch.diag_embed(reciprocals)
