"""One operator of `torch.library`, with all that torch asks of it: shapes, derivatives, vmap.

`torch.library.custom_op` makes operators that `torch.func` cannot differentiate, and whose derivative in
forward mode is silently zero. So the autograd function is our own here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from strategies.autograd.derivatives import filled, spread
from strategies.autograd.levels import forward_mode, tangent_of
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.transforms import (
    AtOneLevel,
    Dims,
    below_vmap,
    without_tangents,
)
from strategies.kernels.memory import with_memory

_LIBRARY = torch.library.Library("backward_strategies", "FRAGMENT")

_REVISION = 3
"""Raise it with each change of what an operator returns for the same inputs.

Inductor keeps graphs on disk, by the names of operators alone; one with the sizes of another revision ends
with an AssertionError.
"""
torch.compiler.config.cache_key_tag += f" {_LIBRARY.ns} {_REVISION}"

_TAGS = (
    torch.Tag.pt2_compliant_tag,
    torch.Tag.cudagraph_unsafe,  # values are read, which a captured graph cannot
)


class Registered(ABC):
    """An operator.

    Args:
        name: after "backward_strategies::".
        parameters: as in a schema; empty ones are left out.
        returned: as in a schema.

    Attributes:
        arity: how many of the operands, from the first, are inputs of the operation.
        differentiable: how many of the outputs, from the first, carry gradients; None: all.
        saves: how many of the other arguments, from the first, are what another operator returned for
            the same operands.
        takes_vectors: whether right-hand sides of one dimension less than the matrices are vectors.
    """

    arity: int
    differentiable: int | None = None
    saves: int = 0
    takes_vectors: bool = False

    def __init__(self, name: str, parameters: Sequence[str], returned: str) -> None:
        _LIBRARY.define(f"{name}({', '.join(filter(None, parameters))}) -> {returned}", tags=_TAGS)
        _LIBRARY.impl(name, self._uncompiled, "CompositeExplicitAutograd")
        _LIBRARY.impl(name, self.recorded, "Autograd")
        qualified = f"{_LIBRARY.ns}::{name}"
        torch.library.register_fake(qualified, self.fake, lib=_LIBRARY)
        # An alias, before which a kernel in C++ comes.
        _LIBRARY.impl(name, self.mapped, "FuncTorchBatchedDecomposition")
        self.operator = getattr(getattr(torch.ops, _LIBRARY.ns), name).default

    @abstractmethod
    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        """The operator, at run time."""

    @abstractmethod
    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        """Tensors of the shapes and dtypes of what it returns."""

    @abstractmethod
    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The operands, which have derivatives, and the rest."""

    @abstractmethod
    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        """The operator, of these."""

    @abstractmethod
    def derive(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        """The operator that is a derivative.

        Args:
            kind: "backward" or "forward".
            at: the call that is differentiated.
            given: cotangents of the outputs, or the tangents of the operands that are flagged.
            needed: which operands to give gradients of, or are given tangents.
        """

    @_disable_dynamo
    def _uncompiled(self, *arguments: Any) -> Sequence[Tensor]:
        return self.compute(*arguments)

    def recorded(self, *arguments: Any) -> Any:
        """The operator as autograd records it."""
        operands, rest = self.split(arguments)
        call, tensors = Call.of(self, operands, rest)
        is_recorded = torch.is_grad_enabled() and any(each.requires_grad for each in operands)
        has_tangents = forward_ad._current_level >= 0 and any(
            tangent_of(each) is not None for each in operands
        )
        if not (is_recorded or has_tangents or torch._C._are_functorch_transforms_active()):
            outputs = call.below_autograd(*tensors)
        else:
            # The dispatcher has come to one level of those of torch.func, and goes on to the next.
            with enable_single_level_autograd_function():
                outputs = _apply(call.next_level, call, *tensors)
        return self._returned(outputs)

    def mapped(self, *arguments: Any) -> Any:
        """The operator over the samples of the `vmap` that is the innermost level."""
        call, tensors = Call.of(self, *self.split(arguments))

        def over_batch(_: object, *mapped: Any) -> tuple[Sequence[Tensor], Dims]:
            return self.over_batch(call, *mapped)

        return self._returned(below_vmap(call.dispatched, tensors, over_batch))

    def over_batch(
        self, call: Call, size: int, tensors: Sequence[Tensor], dims: Dims
    ) -> tuple[Sequence[Tensor], Dims]:
        """The operator over one more dimension: of the batch, or one call after the other.

        The latter where that batch would be broadcast with another: of a vector for many matrices, of
        tolerances, or of the strategies that calls one after the other have used.
        """
        saves, arity, count = self.saves, self.arity, call.count
        has_batches = any(each.ndim for each in tensors[count + saves :])
        if has_batches or not self.are_alike(tensors[:arity], dims):
            calls = [call.dispatched(*_at(i, tensors, dims)) for i in range(size)]
            stacked = [torch.stack(each) for each in zip(*calls, strict=True)]
            return stacked, [0] * len(stacked)
        depths = self.depths(call, tensors, dims)
        are_mapped = any(dim is not None for dim in (*dims[:arity], *dims[count : count + saves]))
        if are_mapped or not self.takes_many(tensors):
            # What is saved belongs to these matrices only if it was computed where they were mapped, too.
            places = [*depths, *[0] * (saves - 1)]
            place = max(depths)
            moved = [_with_dim(*each, size) for each in zip(tensors, dims, places, strict=False)]
        else:
            missing = [max(depths) - depth for depth in depths]
            place = 0
            moved = [_leading(*each) for each in zip(tensors, dims, missing, strict=False)]
        pairs = zip(tensors[len(moved) :], dims[len(moved) :], strict=True)
        others = [each.movedim(dim, 0) if dim else each for each, dim in pairs]
        outputs = call.dispatched(*moved, *others)
        return outputs, [None if dim is None else place for dim in self.dims(outputs)]

    def depths(self, call: Call, tensors: Sequence[Tensor], dims: Dims) -> list[int]:
        """How many dimensions of each operand are before those of the inputs' batch."""
        return [0] * call.count

    def takes_many(self, tensors: Sequence[Tensor]) -> bool:
        """Whether operands may have a dimension that the inputs have not, before those of their batch."""
        return False

    def dims(self, outputs: Sequence[Tensor]) -> list[int | None]:
        """The dimensions over which outputs are mapped."""
        return [0] * len(outputs)

    def are_alike(self, operands: Sequence[Tensor], dims: Sequence[int | None]) -> bool:
        """Whether a matrix and a right-hand side are in batches alike, and so with a dimension more."""
        shapes = [
            each.shape if dim is None else each.shape[:dim] + each.shape[dim + 1 :]
            for each, dim in zip(operands, dims, strict=False)
        ]
        return all(
            len(each) == len(shapes[0]) or (self.takes_vectors and each == shapes[0][:-1])
            for each in shapes
        )

    def _returned(self, outputs: Iterable[Any]) -> Any:
        return list(outputs) if self.differentiable is None else tuple(outputs)


class Recorded(NamedTuple):
    """What an operator took and has returned: operands and the rest, as split, and outputs."""

    operands: Sequence[Tensor]
    rest: Sequence[Any]
    outputs: Sequence[Tensor]


@dataclass(frozen=True)
class Call:
    """One call of an operator: what it takes besides tensors, and where tensors belong."""

    operator: Registered
    count: int
    rest: tuple[Any, ...]
    is_tensor: tuple[bool, ...]

    @classmethod
    def of(
        cls, operator: Registered, operands: Sequence[Tensor], rest: Sequence[Any]
    ) -> tuple[Call, list[Tensor]]:
        """The call, and the tensors: the operands, and those of the rest."""
        is_tensor = tuple([isinstance(each, Tensor) for each in rest])
        pairs = list(zip(rest, is_tensor, strict=True))
        values = tuple([None if of_tensor else each for each, of_tensor in pairs])
        tensors = [*operands, *(each for each, of_tensor in pairs if of_tensor)]
        return cls(operator, len(operands), values, is_tensor), tensors

    def arguments(self, tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Operands and the rest, of the tensors or of what is said of each of them."""
        others = iter(tensors[self.count :])
        pairs = zip(self.rest, self.is_tensor, strict=True)
        rest = [next(others) if is_tensor else value for value, is_tensor in pairs]
        return list(tensors[: self.count]), rest

    def dispatched(self, *tensors: Tensor) -> Tensors:
        return tuple(self.operator.call(*self.arguments(tensors)))

    def below_autograd(self, *tensors: Tensor) -> Tensors:
        with torch._C._AutoDispatchBelowAutograd():
            return self.dispatched(*tensors)

    def next_level(self, *tensors: Tensor) -> Tensors:
        """For the levels below, for which the one around is what calls."""
        with torch.enable_grad(), forward_mode(on=True):
            return self.below_autograd(*tensors)


class _Function(AtOneLevel):
    """An operator at one level of differentiation."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, ctx.call, *tensors = inputs
        differentiable = ctx.call.operator.differentiable
        if differentiable is not None:
            ctx.mark_non_differentiable(*output[differentiable:])
        # The caller may write into derivatives. The next one takes them, as they are now, for constants.
        is_derivative = ctx.call.operator.saves > 0
        kept = [each.detach().clone() for each in output] if is_derivative else output
        ctx.save_for_backward(*tensors, *kept)
        ctx.save_for_forward(*tensors, *output)
        ctx.number_of_tensors = len(tensors)
        # Else what is kept besides is given a cotangent of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Gradients:
        if all(each is None for each in cotangents):
            return (None,) * len(ctx.needs_input_grad)
        at = _recorded(ctx, ctx.saved_tensors)
        needed = ctx.needs_input_grad[2 : 2 + len(at.operands)]
        count = ctx.call.operator.differentiable
        given = filled(cotangents[:count], at.outputs[:count])
        derived = ctx.call.operator.derive("backward", at, given, needed)
        constants = [None] * (ctx.number_of_tensors - len(at.operands))
        return (None, None, *spread(derived, needed), *constants)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Gradients:
        with forward_mode(on=True):
            at = _recorded(ctx, without_tangents(ctx.saved_tensors))
            of_operands = tangents[: len(at.operands)]
            needed = [each is not None for each in of_operands]
            given = [with_memory(each) for each in of_operands if each is not None]
            found = ctx.call.operator.derive("forward", at, given, needed)
        return (*found, *[None] * (len(at.outputs) - len(found)))


_apply: Callable[..., Tensors] = _Function.apply  # type: ignore[attr-defined]  # not in torch's stubs


def _recorded(ctx: Any, tensors: Tensors) -> Recorded:
    count = ctx.number_of_tensors
    operands, rest = ctx.call.arguments(tensors[:count])
    return Recorded(operands, rest, tensors[count:])


def _with_dim(tensor: Tensor, dim: int | None, place: int, size: int) -> Tensor:
    """The tensor with its mapped dimension, of a size, at a place."""
    if dim is None:
        return tensor.unsqueeze(place).expand(*tensor.shape[:place], size, *tensor.shape[place:])
    return tensor.movedim(dim, place)


def _leading(tensor: Tensor, dim: int | None, more: int) -> Tensor:
    """The tensor with its mapped dimension, if it has one, as the first, before so many of one entry."""
    return tensor if dim is None else tensor.movedim(dim, 0)[(slice(None), *[None] * more)]


def _at(index: int, values: Sequence[Tensor], dims: Dims) -> list[Tensor]:
    pairs = zip(values, dims, strict=True)
    return [value if dim is None else value.select(dim, index) for value, dim in pairs]
