"""Substitution with one triangle of a matrix, differentiated as a solve with all of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from strategies.autograd.levels import forward_mode, without_tangents
from strategies.autograd.nodes import is_opaque
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.transforms import AtOneLevel, at_all_levels
from strategies.factors import Triangular
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas.differential import finite_differential

__all__ = ["FullTriangular"]


class FullTriangular(Triangular):
    """F⁻¹ of a triangular F as a function of a full matrix, at one whose other triangle is zero.

    That is not read, and has a gradient.

    Example:
        >>> L = torch.eye(2).requires_grad_()
        >>> FullTriangular(L, Structure.LOWER).apply(torch.ones(2, 1)).sum().backward()
        >>> L.grad
        tensor([[-1., -1.],
                [-1., -1.]])
    """

    def solve(self, c: Tensor) -> Tensor:
        return _solved(self.factor, self.structure, c, adjoint=False)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return _solved(self.factor, self.structure, x, adjoint=True)


def _solved(F: Tensor, structure: Structure, rhs: Tensor, *, adjoint: bool) -> Tensor:
    if any(map(is_opaque, (F, rhs))):
        triangle = F.triu() if structure.is_upper else F.tril()
        full = triangle + finite_differential(F - triangle)
        return torch.linalg.solve(full.mH if adjoint else full, rhs)

    def outputs(F: Tensor, rhs: Tensor) -> Tensors:
        inverse = Triangular(F, structure)
        return (inverse.solve_adjoint(rhs) if adjoint else inverse.solve(rhs),)

    return at_all_levels(_Substitution, (structure, adjoint), outputs, (F, rhs))[0]


class _Substitution(AtOneLevel):
    """X = F⁻¹B, or F⁻ᴴB."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, (ctx.structure, ctx.adjoint), F, _ = inputs
        ctx.save_for_backward(F, *output)
        ctx.save_for_forward(F, *output)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Gradients:
        F, X = ctx.saved_tensors
        of_rhs = _solved(F, ctx.structure, cotangent, adjoint=not ctx.adjoint)
        left, right = (X, of_rhs) if ctx.adjoint else (of_rhs, X)
        return None, None, -left @ right.mH, of_rhs

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, of_F: Tensor | None, moved: Tensor | None) -> Tensors:
        with forward_mode(on=True):
            F, X = without_tangents(ctx.saved_tensors)
            if of_F is not None:
                made_up_for = -(of_F.mH if ctx.adjoint else of_F) @ X
                moved = made_up_for if moved is None else made_up_for + moved
            assert moved is not None
            return (_solved(F, ctx.structure, moved, adjoint=ctx.adjoint),)
