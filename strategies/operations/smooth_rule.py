"""Operations whose derivatives go by the factors of A, except in forward mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor
from torch.autograd import forward_ad

from strategies.autograd.rule import Rule, Tensors
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.strategy import Saved

__all__ = ["SmoothRule"]


@dataclass(frozen=True)
class SmoothRule(Rule):
    """The rule of a factorization. In forward mode it keeps A, too: tangents by the factors lose digits."""

    unread_inputs: ClassVar[tuple[int, ...]] = (0,)

    # Differentiate derivatives as functions of A, not of the factors.
    by_matrix: bool = field(default_factory=lambda: forward_ad._current_level >= 0, kw_only=True)

    def saved_inputs(self, inputs: Tensors, inverse: PseudoInverse | None) -> Tensors:
        return inputs if self.by_matrix else super().saved_inputs(inputs, inverse)

    def matrix(self, at: Saved) -> Tensor | None:
        """A, if derivatives are differentiated as functions of it."""
        return at.matrix if self.by_matrix else None
