"""Derivatives of the LU factors as expressions that are smooth and accurate to every order.

Written over L and U, second derivatives have products of U⁻¹ and dU, where the condition of A meets
itself. In the notation of `strategies.formulas.lu`, let L₀ and U₀ be L₁ and U₁ where derivatives are
wanted, and constant. Then

    L₁ = L₀ L',    U₁ = U' U₀,    L' U' = L₀⁻¹ A₁₁ U₀⁻¹,

where L' and U' are identities there. The formulas of the first order solve with these and with L₀ and U₀.

L' and U' are functions of L and U, L' = I + L₀⁻¹ (L₁ − L₀) and U' = I + (U₁ − U₀) U₀⁻¹, or else of A, the
factors of I + L₀⁻¹ (A₁₁ − L₀U₀) U₀⁻¹. In forward mode only the latter will do: the tangent of U₁ has been
rounded, and U₀⁻¹ magnifies that. In reverse mode nothing is rounded but what U₀⁻¹ has been applied to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.nonsingular import Product, Triangular
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas import lu
from strategies.formulas.blocks import first_columns, first_rows, leading_block
from strategies.formulas.differential import differential
from strategies.formulas.sums import add

__all__ = ["Near"]


class Near(NamedTuple):
    """The factors by what they are where derivatives are wanted."""

    packed: Tensor  # L' and U', of which the first is unit lower triangular, and L₂ and U₂
    L: Triangular  # the inverse of L₀
    U: Triangular  # that of U₀

    @classmethod
    def of_factors(cls, LU: Tensor) -> Near:
        """As functions of the packed factors."""
        k = min(LU.shape[-2:])
        L, U = _constants(LU)
        change = leading_block(differential(LU), k)
        relative = L.apply(change.tril(-1)) + U.apply_adjoint(change.triu().mH).mH
        leading = add(_identity(LU), relative)
        return cls(_joined(leading, LU[..., k:, :], LU[..., :k, k:]), L, U)

    @classmethod
    def of_matrix(
        cls, LU: Tensor, rows: Tensor, factored: Callable[[Tensor], Tensor], rank: Tensor | None
    ) -> Near:
        """As functions of A in pivoted order, `rows`.

        The packed factors are at full rank (see `lu.extend`), and constant beyond the rank, (...); None is
        full. `factored` makes those of a matrix that is an identity where derivatives are wanted.
        """
        k = min(LU.shape[-2:])
        L, U = _constants(LU)
        LU, change = LU.detach(), differential(rows)
        above = L.apply(first_rows(change, k))
        near = add(_identity(LU), U.apply_adjoint(first_columns(above, k).mH).mH)
        leading = factored(near)
        below = add(LU[..., k:, :k], U.apply_adjoint(change[..., k:, :k].mH).mH)
        packed = _joined(
            leading,
            Triangular(leading, Structure.UPPER).apply_adjoint(below.mH).mH,
            Triangular(leading, Structure.UNIT_LOWER).apply(add(LU[..., :k, k:], above[..., k:])),
        )
        return cls(packed if rank is None else lu.extend(packed, rank), L, U)

    def backward(self, cotangent: Tensor) -> Tensor:
        """`lu.backward`, differentiable in the factors and their cotangent."""
        k = self._leading.shape[-1]
        L_bar, U_bar = leading_block(cotangent, k).tril(-1), leading_block(cotangent, k).triu()
        L_bar = L_bar + self.L.factor.tril(-1).mH @ L_bar
        L_bar = L_bar + self._leading.tril(-1).mH @ L_bar
        U_bar = U_bar @ self.U.factor.triu().mH @ self._leading.triu().mH
        return lu.gradient(*self._inverses, self.packed, cotangent, L_bar - U_bar)

    def jvp(self, tangent: Tensor) -> Tensor:
        """`lu.jvp`, differentiable in the factors and the tangent."""

        def times_upper(matrix: Tensor) -> Tensor:
            return matrix @ self._leading.triu() @ self.U.factor.triu()

        def lower_times(matrix: Tensor) -> Tensor:
            matrix = matrix + self._leading.tril(-1) @ matrix
            return matrix + self.L.factor.tril(-1) @ matrix

        return lu.tangents(*self._inverses, self.packed, tangent, lower_times, times_upper)

    @property
    def _inverses(self) -> tuple[Product, Product]:
        """Those of L₁ and U₁."""
        lower = Triangular(self._leading, Structure.UNIT_LOWER)
        upper = Triangular(self._leading, Structure.UPPER)
        return Product(self.L, lower), Product(upper, self.U)

    @property
    def _leading(self) -> Tensor:
        return leading_block(self.packed, self.L.factor.shape[-1])


def _constants(LU: Tensor) -> tuple[Triangular, Triangular]:
    """L₀⁻¹ and U₀⁻¹."""
    square = leading_block(LU.detach(), min(LU.shape[-2:]))
    return Triangular(square, Structure.UNIT_LOWER), Triangular(square, Structure.UPPER)


def _identity(LU: Tensor) -> Tensor:
    return torch.eye(min(LU.shape[-2:]), dtype=LU.dtype, device=LU.device)


def _joined(leading: Tensor, below: Tensor, right: Tensor) -> Tensor:
    """A packed matrix from its leading block and what is below it or right of it."""
    if below.shape[-2]:
        return torch.cat([leading, below], dim=-2)
    return torch.cat([leading, right], dim=-1) if right.shape[-1] else leading
