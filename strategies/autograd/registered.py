"""One operator of `torch.library`, with all that torch asks of it: shapes, derivatives, vmap.

`torch.library.custom_op` makes operators that `torch.func` cannot differentiate, and whose derivative in
forward mode is silently zero. So the autograd function is our own here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from strategies.autograd.levels import forward_mode, without_tangents
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.transforms import batch_first
from strategies.kernels.memory import with_memory

__all__ = ["Registered"]

_LIBRARY = torch.library.Library("backward_strategies", "FRAGMENT")

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
    """

    arity: int
    differentiable: int | None = None
    saves: int = 0

    def __init__(self, name: str, parameters: Sequence[str], returned: str) -> None:
        _LIBRARY.define(f"{name}({', '.join(filter(None, parameters))}) -> {returned}", tags=_TAGS)
        _LIBRARY.impl(name, self._uncompiled, "CompositeExplicitAutograd")
        _LIBRARY.impl(name, self._with_autograd, "Autograd")
        qualified = f"{_LIBRARY.ns}::{name}"
        torch.library.register_fake(qualified, self.fake, lib=_LIBRARY)
        torch.library.register_vmap(qualified, self._mapped, lib=_LIBRARY)
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
        self,
        kind: str,
        operands: Sequence[Tensor],
        rest: Sequence[Any],
        outputs: Sequence[Tensor],
        needed: Sequence[bool],
    ) -> Sequence[Tensor]:
        """The operator that is a derivative.

        Args:
            kind: "backward" or "forward".
            operands: of the operator, then cotangents, or the tangents of those that are flagged.
            rest: of its arguments.
            outputs: what it has returned.
            needed: which operands to give gradients of, or are given tangents.
        """

    @_disable_dynamo
    def _uncompiled(self, *arguments: Any) -> Sequence[Tensor]:
        return self.compute(*arguments)

    def below_autograd(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Tensors:
        with torch._C._AutoDispatchBelowAutograd():
            return tuple(self.call(operands, rest))

    def _with_autograd(self, *arguments: Any) -> Any:
        operands, rest = self.split(arguments)
        is_recorded = torch.is_grad_enabled() and any(each.requires_grad for each in operands)
        is_transformed = torch._C._are_functorch_transforms_active()
        if not (is_recorded or is_transformed or forward_ad._current_level >= 0):
            outputs = self.below_autograd(operands, rest)
        else:
            # The dispatcher has come to one level of those of torch.func, and goes on to the next.
            with enable_single_level_autograd_function():
                outputs = _apply(self, rest, *operands)
        return self._returned(outputs)

    def _mapped(self, info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
        """The operator over one more dimension: of the batch, or one call after the other.

        The latter where that batch would be broadcast with another: of a vector for many matrices, of
        tolerances, or of the strategies that calls one after the other have used.
        """
        operands, rest = self.split(arguments)
        dims, dims_of_rest = self.split(in_dims)
        saved, dims_of_saved = rest[: self.saves], dims_of_rest[: self.saves]
        rest, dims_of_rest = rest[self.saves :], dims_of_rest[self.saves :]
        size: int = info.batch_size
        has_batches = any(isinstance(each, Tensor) and each.ndim for each in rest)
        if has_batches or not _are_alike(operands[: self.arity], dims):
            calls = [
                self.call(
                    _at(i, operands, dims),
                    [*_at(i, saved, dims_of_saved), *_at(i, rest, dims_of_rest)],
                )
                for i in range(size)
            ]
            stacked = [torch.stack(each) for each in zip(*calls, strict=True)]
            return self._returned(stacked), self._returned([0] * len(stacked))
        moved = batch_first(zip(operands, dims, strict=True), size)
        # What is saved belongs to these matrices only if it was computed where they were mapped, too.
        pairs = zip(saved, dims_of_saved, strict=True)
        saved = [each if dim is None else each.movedim(dim, 0) for each, dim in pairs]
        outputs = self.call(moved, [*saved, *rest])
        return self._returned(outputs), self._returned(self.dims(outputs))

    def dims(self, outputs: Sequence[Tensor]) -> list[int | None]:
        """The dimensions over which outputs are mapped."""
        return [0] * len(outputs)

    def _returned(self, outputs: Iterable[Any]) -> Any:
        return list(outputs) if self.differentiable is None else tuple(outputs)


class _Function(torch.autograd.function._SingleLevelFunction):
    """An operator at one level of differentiation."""

    @staticmethod
    def forward(operator: Registered, rest: Sequence[Any], *operands: Tensor) -> Tensors:
        # For the levels below, for which this level is what calls.
        with torch.enable_grad(), forward_mode(on=True):
            return operator.below_autograd(operands, rest)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        ctx.operator, rest, *operands = inputs
        if ctx.operator.differentiable is not None:
            ctx.mark_non_differentiable(*output[ctx.operator.differentiable :])
        ctx.is_tensor = [isinstance(each, Tensor) for each in rest]
        ctx.rest = [None if isinstance(each, Tensor) else each for each in rest]
        tensors = [each for each in rest if isinstance(each, Tensor)]
        ctx.counts = len(operands), len(output)
        ctx.save_for_backward(*operands, *output, *tensors)
        ctx.save_for_forward(*operands, *output, *tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Gradients:
        operands, outputs, rest = _saved(ctx, ctx.saved_tensors)
        needed = ctx.needs_input_grad[2:]
        given = [*operands, *cotangents[: ctx.operator.differentiable]]
        found = iter(ctx.operator.derive("backward", given, rest, outputs, needed))
        return (None, None, *(next(found) if need else None for need in needed))

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Gradients:
        needed = [each is not None for each in tangents]
        with forward_mode(on=True):
            operands, outputs, rest = _saved(ctx, without_tangents(ctx.saved_tensors))
            given = [*operands, *(with_memory(each) for each in tangents if each is not None)]
            found = ctx.operator.derive("forward", given, rest, outputs, needed)
        return (*found, *[None] * (len(outputs) - len(found)))


_apply: Callable[..., Tensors] = _Function.apply  # type: ignore[attr-defined]  # not in torch's stubs


def _saved(ctx: Any, tensors: Tensors) -> tuple[Tensors, Tensors, Sequence[Any]]:
    """Operands, outputs and the rest of the arguments among the saved tensors."""
    of_operands, of_outputs = ctx.counts
    others = iter(tensors[of_operands + of_outputs :])
    pairs = zip(ctx.rest, ctx.is_tensor, strict=True)
    rest = [next(others) if is_tensor else value for value, is_tensor in pairs]
    return tensors[:of_operands], tensors[of_operands : of_operands + of_outputs], rest


def _are_alike(operands: Sequence[Tensor], dims: Sequence[int | None]) -> bool:
    """Whether a matrix and a right-hand side are in batches alike, and so with a dimension more."""
    shapes = [
        each.shape if dim is None else each.movedim(dim, 0).shape[1:]
        for each, dim in zip(operands, dims, strict=False)
    ]
    return all(len(each) == len(shapes[0]) or each == shapes[0][:-1] for each in shapes)


def _at(index: int, values: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    pairs = zip(values, dims, strict=True)
    return [value.select(dim, index) if isinstance(dim, int) else value for value, dim in pairs]
