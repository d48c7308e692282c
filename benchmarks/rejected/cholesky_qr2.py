"""A QR made of products: Cholesky of the Gram matrix, twice."""

from typing import Any

import torch
from torch import Tensor

from strategies.builtin.triangular_solve import TriangularSolve, by_qr
from strategies.factors.condition import smallest_of_R
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.factors.rank_guards import refuse_near_deficiency
from strategies.strategy import Tolerance

_NEARLY_ORTHONORMAL = 5 / 64


class CholeskyQR2(TriangularSolve):
    """Q and R of a tall matrix from R₁ᴴR₁ = AᴴA, Q₁ = A R₁⁻¹, and the same again for Q₁.

    Householder's reflections go over a thin matrix a column at a time; here everything that has m
    rows is a product or a solve with n×n matrices. One pass leaves Q₁ orthonormal to κ²u only, which is
    the weakness of normal equations. Where ‖Q₁ᴴQ₁ − I‖ ≤ 5/64, a second pass makes Q as orthonormal
    and Q R as close to A as reflections do (Yamamoto, Nakatsukasa, Yanagisawa & Fukaya, "Roundoff
    error analysis of the CholeskyQR2 algorithm", ETNA 44 (2015), section 3). Beyond it, from κ of about
    u^(−1/2) on, a batch is factored by reflections after all. It is the forward that gains;
    backwards are those of `triangular_solve`.
    """

    name = "cholesky_qr2"
    summary = "QR of a tall matrix by two Cholesky factorizations; otherwise triangular_solve"

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        factors = None if m == n else _cholesky_qr2(matrix)
        if factors is None:
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        Q, R = factors
        refuse_near_deficiency(smallest_of_R(R), matrix, rtol, atol, self.name)
        return by_qr(Q, R)

    def lstsq_forward(self, *_: Any, **__: Any) -> Any:
        return NotImplemented  # that of `triangular_solve` has a factorization of its own


def _cholesky_qr2(matrix: Tensor) -> tuple[Tensor, Tensor] | None:
    """Q and R, or None where a matrix of the batch is too ill-conditioned for it."""
    R1, info = torch.linalg.cholesky_ex(matrix.mH @ matrix, upper=True)
    Q1 = torch.linalg.solve_triangular(R1, matrix, upper=True, left=False)
    gram = Q1.mH @ Q1
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    deviation = torch.linalg.matrix_norm(gram - identity)
    if not bool(((info == 0) & (deviation <= _NEARLY_ORTHONORMAL)).all()):
        return None
    R2 = torch.linalg.cholesky(gram, upper=True)
    return torch.linalg.solve_triangular(R2, Q1, upper=True, left=False), R2 @ R1
