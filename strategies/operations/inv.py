"""`inv`, the inverse of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.choice import StrategyChoice, choose, require_float_matrix
from strategies.autograd.nodes import Gradients, Rule, Tensors, run
from strategies.formulas import solve as formula
from strategies.interface import Strategy
from strategies.operations.pinv import as_factor
from strategies.pseudo_inverse import PseudoInverse

__all__ = ["inv"]


@dataclass(frozen=True)
class _Inv(Rule):
    name = "inv"

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        result, inverse = strategy.inverse(inputs[0])
        return (result,), inverse

    def backward(
        self,
        strategy: Strategy,
        inverse: PseudoInverse | None,
        inputs: Tensors,
        outputs: Tensors,
        cotangents: Tensors,
        needed: Sequence[bool],
    ) -> Gradients:
        assert inverse is not None
        return (strategy.inv_backward(inverse, *cotangents),)

    def explicit_backward(
        self, strategy: Strategy, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> Tensors:
        return (formula.inv_backward(as_factor(*inputs, *outputs), *cotangents),)

    def jvp(
        self, strategy: Strategy, inputs: Tensors, outputs: Tensors, tangents: Gradients
    ) -> Tensors:
        (tangent,) = tangents
        assert tangent is not None
        return (formula.inv_jvp(as_factor(*inputs, *outputs), tangent),)


def inv(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """A⁻¹ of each matrix of a batch.

    As `torch.linalg.inv`.

    Args:
        A: (..., n, n).
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        A⁻¹, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: a matrix is singular.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> inv(torch.tensor([[4.0]]), strategy="explicit_inverse")
        tensor([[0.2500]])
    """
    (chosen,) = choose(strategy, "inv", A)
    if chosen.forward_is_differentiable:
        return torch.linalg.inv(A)
    require_float_matrix("inv", A, square=True)
    return run(_Inv(), chosen, A)[0]
