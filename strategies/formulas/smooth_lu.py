"""Derivatives of the LU factors as expressions that are smooth and accurate to every order.

Written over L and U, second derivatives have products of U⁻¹ and dU, where the condition of A meets
itself. In the notation of `strategies.formulas.lu`, let L₀ and U₀ be L₁ and U₁ where derivatives are
wanted, and constant. Then L₀⁻¹ A₁₁ U₀⁻¹, A₂₁ U₀⁻¹ and L₀⁻¹ A₁₂ are the blocks of a matrix with the factors

    L₀⁻¹ L₁ = I + L₀⁻¹ (L₁ − L₀),    U₁ U₀⁻¹ = I + (U₁ − U₀) U₀⁻¹,    L₂,    U₂,

the first two of which are identities there. The formulas of the first order (Walter & Lehmann 2010), of
these, solve with nothing else than them; solves with L₀ and U₀, which are linear, carry results over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Structure
from strategies.factors.triangular import Triangular
from strategies.formulas import lu
from strategies.formulas.lu import leading_block

__all__ = ["backward", "jvp"]


def backward(LU: Tensor, cotangent: Tensor) -> Tensor:
    """`lu.backward`, differentiable in the packed factors and their cotangent."""
    near = _Near.of(LU)
    return near.gradient(lu.backward(Triangular, near.packed, near.cotangent(cotangent)))


def jvp(LU: Tensor, tangent: Tensor) -> Tensor:
    """`lu.jvp`, differentiable in the packed factors and the tangent."""
    near = _Near.of(LU)
    return near.factors(lu.jvp(Triangular, near.packed, near.tangent(tangent)))


class _Near(NamedTuple):
    """Factors preconditioned by what they are where derivatives are wanted, which is constant.

    Attributes:
        packed: L₀⁻¹L₁ and U₁U₀⁻¹, which are identities there, and L₂ and U₂ as they are.
        L: L₀.
        U: U₀.
    """

    packed: Tensor
    L: Triangular
    U: Triangular

    @classmethod
    def of(cls, LU: Tensor) -> _Near:
        k = min(LU.shape[-2:])
        at = LU.detach()
        square, change = leading_block(at, k), leading_block(LU - at, k)
        L, U = Triangular(square, Structure.UNIT_LOWER), Triangular(square, Structure.UPPER)
        identity = torch.eye(k, dtype=LU.dtype, device=LU.device)
        # The changes are zero, and are there for their derivatives.
        leading = identity + L.apply(change.tril(-1)) + U.apply_adjoint(change.triu().mH).mH
        return cls(_with_leading(LU, leading), L, U)

    def cotangent(self, packed: Tensor) -> Tensor:
        """That of these factors, from that of L and U."""
        k = self.L.factor.shape[-1]
        L_bar, U_bar = leading_block(packed, k).tril(-1), leading_block(packed, k).triu()
        of_L = L_bar + self.L.factor.tril(-1).mH @ L_bar
        return _with_leading(packed, of_L.tril(-1) + (U_bar @ self.U.factor.triu().mH).triu())

    def factors(self, packed: Tensor) -> Tensor:
        """The tangent of L and U, from that of these factors."""
        k = self.L.factor.shape[-1]
        dL, dU = leading_block(packed, k).tril(-1), leading_block(packed, k).triu()
        of_L = dL + self.L.factor.tril(-1) @ dL
        return _with_leading(packed, of_L + dU @ self.U.factor.triu())

    def tangent(self, rows: Tensor) -> Tensor:
        """Of L₀⁻¹ PᵀA U₀⁻¹, whose factors these are, from that of PᵀA."""
        k = self.L.factor.shape[-1]
        rows = _by_rows(rows, k, self.L.apply)
        return _by_rows(rows.mH, k, self.U.apply_adjoint).mH

    def gradient(self, rows: Tensor) -> Tensor:
        """That of PᵀA, from that of L₀⁻¹ PᵀA U₀⁻¹."""
        k = self.L.factor.shape[-1]
        rows = _by_rows(rows, k, self.L.apply_adjoint)
        return _by_rows(rows.mH, k, self.U.apply).mH


def _by_rows(matrix: Tensor, k: int, solve: Callable[[Tensor], Tensor]) -> Tensor:
    """The first k rows solved for, and the others as they are."""
    if matrix.shape[-2] == k:
        return solve(matrix)
    return torch.cat([solve(matrix[..., :k, :]), matrix[..., k:, :]], dim=-2)


def _with_leading(packed: Tensor, leading: Tensor) -> Tensor:
    """The packed matrix with another leading block."""
    k = leading.shape[-1]
    if packed.shape[-2] > k:
        return torch.cat([leading, packed[..., k:, :]], dim=-2)
    return leading if packed.shape[-1] == k else torch.cat([leading, packed[..., k:]], dim=-1)
