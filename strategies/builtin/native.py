"""PyTorch's own backward: the baseline of every comparison."""

import torch
from torch import Tensor

from strategies.factors import Dense
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.accuracy_classes import SOLVES_SQUARE_WITH_LU
from strategies.strategy import Strategy, Tolerance


class Native(Strategy):
    """`torch.linalg`, differentiated by PyTorch.

    `factor`, the part that the other strategies build on, is `torch.linalg.pinv`.

    Example:
        >>> import torch, strategies
        >>> strategies.get("native").factor(torch.tensor([[2.0]])).dense()
        tensor([[0.5000]])
    """

    name = "native"
    summary = "PyTorch's own operation and autograd formula"
    requires_full_rank = False
    forward_is_differentiable = True
    accuracy = SOLVES_SQUARE_WITH_LU

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        rank = torch.linalg.matrix_rank(matrix, rtol=rtol, atol=atol)
        smallest = int(rank.min()) if rank.numel() else n
        inverse = torch.linalg.pinv(matrix, rtol=rtol, atol=atol)
        return Dense(matrix, inverse, rank, smallest == n, smallest == m)

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        return self.factor_tall(structure.dense(matrix), rtol=0.0, atol=0.0)
