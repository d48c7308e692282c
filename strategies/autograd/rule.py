"""What autograd needs to know of an operation.

A `Rule` says how to compute the operation and its gradient with a strategy, on plain tensors, and
the same gradient written over the operation's inputs and outputs in differentiable calls. All
orders and modes of differentiation follow from that, in `strategies.autograd.nodes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from strategies.interface import Saved, Strategy
from strategies.pseudo_inverse import PseudoInverse

__all__ = ["Gradients", "Rule", "Tensors", "only"]

Tensors = tuple[Tensor, ...]
Gradients = tuple[Tensor | None, ...]


class Rule(ABC):
    """One operation, with the options of one call.

    Attributes:
        name: of the operation, for messages.
        arity: how many tensors it takes that have gradients. Further ones are constants, as pivots
            are: what the gradient needs of them is among the outputs.
        differentiable: how many of the outputs, from the first, carry gradients; the others are
            what the gradient needs beside them (pivots, ranks).
        unread: positions of outputs whose values no gradient reads, so that the caller may overwrite
            them before the backward.
    """

    name: ClassVar[str]
    arity: ClassVar[int] = 1
    differentiable: ClassVar[int] = 1
    unread: ClassVar[tuple[int, ...]] = ()

    @abstractmethod
    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse | None]:
        """The outputs, and the factors that the gradient will reuse."""

    @abstractmethod
    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        """The gradients of the inputs by the strategy; one that is not needed may be None."""

    @abstractmethod
    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        """The gradients of the inputs as differentiable functions of them, outputs and cotangents."""

    @abstractmethod
    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        """The tangents of the differentiable outputs, in differentiable calls; None is zero."""


def only(tangents: Gradients) -> Tensor:
    """The tangent of the one input of an operation."""
    (tangent,) = tangents
    assert tangent is not None
    return tangent
