"""PyTorch's own backward: the baseline of every comparison."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.factors import Dense
from strategies.interface import Strategy, Tolerance
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["Native"]


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

    def factor(
        self,
        matrix: Tensor,
        structure: Structure = Structure.GENERAL,
        *,
        rtol: Tolerance = None,
        atol: Tolerance = None,
    ) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        rank = torch.linalg.matrix_rank(structure.dense(matrix), rtol=rtol, atol=atol)
        smallest = int(rank.min()) if rank.numel() else min(m, n)
        inverse = torch.linalg.pinv(structure.dense(matrix), rtol=rtol, atol=atol)
        return Dense(structure.dense(matrix), inverse, rank, smallest == n, smallest == m)
