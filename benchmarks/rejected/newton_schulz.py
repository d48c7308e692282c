"""A⁺ by an iteration that consists of products only."""

import torch
from torch import Tensor

from strategies.errors import raise_if_singular
from strategies.factors import Dense
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.strategy import Strategy, Tolerance

_MOST_STEPS = 100


class NewtonSchulz(Strategy):
    """X ← X (2I − A X) from X = Aᴴ/(‖A‖₁‖A‖∞) converges to A⁺.

    Ben-Israel & Cohen, "On iterative computation of generalized inverses and associated
    projections", SIAM J. Numer. Anal. 3 (1966). The error is squared in every step once it is below 1,
    but it takes about 2 log₂ κ steps to get there, each two products.
    """

    name = "newton_schulz"
    summary = "the inverse by Newton's iteration; products only"
    requires_full_rank = True

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        scale = torch.linalg.matrix_norm(matrix, 1) * torch.linalg.matrix_norm(matrix, torch.inf)
        X = matrix.mH / scale[..., None, None]
        identity = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
        residual = torch.inf
        for _ in range(_MOST_STEPS):
            # From the left, X A is n×n where A X would be m×m.
            product = X @ matrix
            before, residual = residual, float(torch.linalg.matrix_norm(identity - product).max())
            if residual < 1e-2 and residual >= before / 2:
                break
            X = (2 * identity - product) @ X
        rank = torch.full(matrix.shape[:-2], n, dtype=torch.int64, device=matrix.device)
        raise_if_singular(rank * residual > n / 2, self.name, "it takes full rank only")
        return Dense(matrix, X, rank, full_column_rank=True, full_row_rank=m == n)
