"""Derivatives of the Cholesky factor as expressions that are smooth and accurate to every order.

As in `strategies.formulas.smooth_lu`, with L₀ what L is where derivatives are wanted, and constant:

    L = L₀ L',    L' L'ᴴ = L₀⁻¹ A L₀⁻ᴴ,

where L' is an identity there. It is a function of L, I + L₀⁻¹ (L − L₀), or else of A, the factor of
I + L₀⁻¹ (A − L₀L₀ᴴ) L₀⁻ᴴ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.nonsingular import Product, Triangular
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas import cholesky
from strategies.formulas.differential import differential, finite_differential
from strategies.formulas.domains import hermitian_part
from strategies.formulas.sums import add

__all__ = ["Near"]


class Near(NamedTuple):
    """The factor by what it is where derivatives are wanted."""

    factor: Tensor  # L'
    L: Triangular  # the inverse of L₀

    @classmethod
    def of_factor(cls, L: Tensor) -> Near:
        """As a function of L."""
        inverse, identity = _constants(L)
        return cls(add(identity, inverse.apply(differential(L))), inverse)

    @classmethod
    def of_matrix(cls, L: Tensor, A: Tensor, factored: Callable[[Tensor], Tensor]) -> Near:
        """As a function of A.

        No derivatives are taken of L. `factored` makes the factor of a matrix that is an identity where
        derivatives are wanted.
        """
        inverse, identity = _constants(L)
        change = hermitian_part(finite_differential(A))
        near = add(identity, inverse.apply(inverse.apply(change).mH))
        return cls(factored(near), inverse)

    def backward(self, cotangent: Tensor) -> Tensor:
        """`cholesky.backward`, differentiable in the factor and its cotangent."""
        lower = cotangent.tril()
        inner = self.factor.mH @ (self.L.factor.mH @ lower)
        return cholesky.gradient(self._inverse, lower, inner)

    def jvp(self, tangent: Tensor) -> Tensor:
        """`cholesky.jvp`, differentiable in the factor and the tangent."""
        change, upper = cholesky.relative_tangent(self._inverse, tangent)
        return (change - self.L.factor @ (self.factor @ upper)).tril()

    @property
    def _inverse(self) -> Product:
        """That of L."""
        return Product(self.L, Triangular(self.factor, Structure.LOWER))


def _constants(L: Tensor) -> tuple[Triangular, Tensor]:
    """L₀⁻¹, and an identity."""
    identity = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return Triangular(L.detach(), Structure.LOWER), identity
