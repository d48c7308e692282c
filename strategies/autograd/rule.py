"""What autograd needs to know of an operation.

A `Rule` says how to compute the operation and its gradient with a strategy, on plain tensors, and
the same gradient written over the operation's inputs and outputs in differentiable calls. All
orders and modes of differentiation follow from that, in `strategies.autograd.nodes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from torch import Tensor

from strategies.autograd.transforms import over_equal_batches
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.memory import without_entries
from strategies.strategy import Saved, Strategy

if TYPE_CHECKING:
    from strategies.autograd.fast_path_node import Computed

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
        unread_inputs: positions of inputs of which derivatives read no more than shape and dtype, likewise.
    """

    name: ClassVar[str]
    arity: ClassVar[int] = 1
    differentiable: ClassVar[int] = 1
    unread: ClassVar[tuple[int, ...]] = ()
    unread_inputs: ClassVar[tuple[int, ...]] = ()
    over_batch = staticmethod(over_equal_batches)
    """Maps the operation, of which inputs are in batches alike by default."""

    @abstractmethod
    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse | None]:
        """The outputs, and the factors that the gradient will reuse."""

    def saved_inputs(self, inputs: Tensors, inverse: PseudoInverse | None) -> Tensors:
        """The inputs as derivatives read them."""
        return tuple(
            without_entries(each) if i in self.unread_inputs else each
            for i, each in enumerate(inputs)
        )

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

    def explicit(
        self, strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
    ) -> Tensors:
        """`explicit_backward` from inputs, None for one that it does not read, and outputs."""
        return self.explicit_backward(strategy, saved_without_inverse(inputs, outputs), cotangents)

    def tangents(self, computed: Computed, tangents: Gradients) -> Tensors:
        """`jvp` from what the fast path has computed of constant inputs."""
        at = saved_without_inverse(computed.inputs, computed.outputs)
        return self.jvp(computed.strategy, at, tangents)


def only(tangents: Gradients) -> Tensor:
    """The tangent of the one input of an operation."""
    (tangent,) = tangents
    assert tangent is not None
    return tangent


def saved_without_inverse(inputs: Gradients, outputs: Tensors) -> Saved:
    """What the explicit form and the forward mode of a rule read; they form what they need of an inverse.

    Args:
        inputs: None for one that neither reads.
        outputs: of the rule.
    """
    return Saved(cast(PseudoInverse, None), cast(Tensors, inputs), outputs)
