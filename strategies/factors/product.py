"""A product of two nonsingular matrices, solved against."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse

__all__ = ["Product"]


@dataclass(frozen=True, eq=False)
class Product(Nonsingular):
    """(F G)⁻¹ from F⁻¹ and G⁻¹.

    Example:
        >>> import torch
        >>> from strategies.factors import DenseInverse
        >>> half, third = DenseInverse(torch.tensor([[1 / 2]])), DenseInverse(torch.tensor([[1 / 3]]))
        >>> Product(half, third).apply(torch.tensor([[12.0]]))
        tensor([[2.]])
        >>> Product(half, third).dense()
        tensor([[0.1667]])
    """

    left: PseudoInverse
    right: PseudoInverse

    @property
    def rank(self) -> Tensor:
        return self.left.rank

    def solve(self, c: Tensor) -> Tensor:
        return self.right.apply(self.left.apply(c))

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.left.apply_adjoint(self.right.apply_adjoint(x))

    def dense(self) -> Tensor:
        return self.right.apply(self.left.dense())
