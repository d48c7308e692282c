"""What triangular factors tell of the rank of a matrix and of the accuracy of elimination.

The smallest singular value σ_n of A is estimated by a step or two of inverse iteration: with y = A⁻ᴴx and
z = A⁻¹y, ‖y‖ / ‖z‖ is at least σ_n, for any x. Where the other singular values are much larger, which is
where a decision depends on it, it is σ_n to a few digits. Estimates of no use are zero.
"""

import torch
from torch import Tensor

from strategies.factors.nonsingular import LUFactors, Triangular
from strategies.factors.pseudo_inverse import Nonsingular, Structure
from strategies.kernels.cpu import calls


def frobenius_norms(matrices: Tensor) -> Tensor:
    """‖A‖_F of each matrix, (..., m, n) -> (...), real."""
    if matrices.ndim == 2:
        return torch.linalg.vector_norm(matrices)
    if matrices.is_complex():
        # Of real numbers torch sums up the squares ten times faster.
        matrices = torch.view_as_real(matrices.resolve_conj()).flatten(-2)
    return torch.linalg.vector_norm(matrices, dim=(-2, -1))


def smallest_of_R(R: Tensor) -> Tensor:  # noqa: N802 - R is its name
    """An estimate of σ_n of upper triangular R, (..., n, n); what is below is not read.

    Example:
        >>> smallest_of_R(torch.tensor([[8.0, 0.0], [0.0, 0.02]])).round(decimals=4)
        tensor(0.0200)
    """
    found = calls.smallest_of_triangle(R.mT.contiguous())
    if found is NotImplemented:
        found = _by_inverse_iteration(Triangular(R, Structure.UPPER), R)
    return found


def smallest_of_LU(LU: Tensor, pivots: Tensor) -> Tensor:  # noqa: N802 - L and U are their names
    """An estimate of σ_n of A = P L U from packed factors, (..., n, n).

    Example:
        >>> A = torch.tensor([[0.0, 0.02], [8.0, 0.0]])
        >>> smallest_of_LU(*torch.linalg.lu_factor(A)).round(decimals=4)
        tensor(0.0200)
    """
    found = calls.smallest_of_product(LU.mT.contiguous())
    if found is NotImplemented:
        found = _by_inverse_iteration(LUFactors(LU, pivots), LU)
    return found


def _by_inverse_iteration(inverse: Nonsingular, like: Tensor) -> Tensor:
    n = like.shape[-1]
    wave = torch.cos(1 + torch.arange(n, device=like.device, dtype=torch.float64).square())
    first = (wave + wave.sign()).to(like.dtype).unsqueeze(-1)
    z = first.expand(*like.shape[:-1], 1)
    # Twice: the first vector may be orthogonal to the last singular vector; what comes of it is not.
    for _ in range(2):
        y = inverse.solve_adjoint(z / frobenius_norms(z)[..., None, None])
        z = inverse.solve(y)
    return frobenius_norms(y) / frobenius_norms(z)


def has_grown(matrix: Tensor, LU: Tensor) -> Tensor:
    """Whether a column of U is so much longer than that of A that digits are lost: bool, (...).

    The backward error of A = P L U is the growth times u (Higham, "Accuracy and Stability of Numerical
    Algorithms", 2nd ed. 2002, theorem 9.3).
    """
    found = calls.has_grown(matrix, LU.mT.contiguous())
    if found is not NotImplemented:
        return found
    limit = 32 + matrix.shape[-1] / 8  # as in `csrc/include/lu.hpp`
    after, before = (torch.linalg.vector_norm(each, dim=-2) for each in (LU.triu(), matrix))
    return (after > limit * before).any(-1)
