"""The operators that are derivatives of an operation, or of its derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from strategies.autograd import plan_derivatives
from strategies.autograd.copies import apart
from strategies.autograd.cpp import used_plan
from strategies.autograd.derivatives import (
    Function,
    composed_derivative,
    derivative,
    eager_mode,
)
from strategies.autograd.fast_path_node import Computed, FoundPlan
from strategies.autograd.registered import Call, Recorded, Registered
from strategies.autograd.rule import Tensors
from strategies.autograd.tracing import is_recorded_below, is_traced
from strategies.autograd.transforms import Dims
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from strategies.autograd.operators import Operator

KINDS: tuple[tuple[str, ...], ...] = (
    ("backward",),
    ("forward",),
    ("backward", "backward"),
    ("backward", "forward"),
    ("forward", "backward"),
)

_OF_MANY = ("backward",), ("forward",), ("backward", "forward")
"""Those of which each cotangent and each tangent may be many, over first dimensions."""

Value = TypeVar("Value")


class Derivative(Registered):
    """The operator that is a derivative of an operation, or of a derivative.

    Its operands are those of what it is the derivative of and, backward, the cotangents of what that
    returns; forward, the tangents of those that are flagged. It returns, backward, gradients of those
    that are flagged; forward, the tangents of what the other returns. Flags of lower orders come first.
    All are also given the outputs of the operation and what that has kept; a second derivative is given
    what the first has returned, as its last operands. There may be many cotangents and tangents for the
    same inputs, over first dimensions, which are broadcast, where no level of reverse mode is left: that
    would add up over them.
    """

    def __init__(
        self, operation: Operator, name: str, options: str, kinds: tuple[str, ...]
    ) -> None:
        self._operation, self._kinds = operation, kinds
        self.arity, self.takes_vectors = operation.arity, operation.takes_vectors
        self.saves = operation.outputs + 1
        saved = [f"Tensor saved_{i}" for i in range(self.saves)]
        flags = [f"bool[] needed_{i}" for i in range(len(kinds))]
        super().__init__(
            "_".join((name, *kinds)),
            ("Tensor[] operands", *saved, options, "Tensor used", *flags),
            "Tensor[]",
        )

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        operands, options, used, flags = self._parts(arguments)
        saved: Sequence[Tensor] = arguments[1 : 1 + self.saves]
        found = used_plan(int(used))
        outputs = saved[: self._operation.differentiable]
        like = self._like(operands[: self.arity], outputs, flags)
        sizes = _sizes_before(operands, like) if self._kinds in _OF_MANY else ()
        with eager_mode(grad=False):
            if found is not None and self._kinds != ("backward",):
                inputs = *operands[: self.arity], *options[: self._operation.constants]
                computed = plan_derivatives.recalled(found, inputs, self._operation.taken, saved)
                of_kept = computed and self._of_computed(computed, arguments, like, sizes)
                if of_kept is not None:
                    return self._apart(of_kept, operands, flags)
            # Of mapped inputs there are more matrices than the plan is for.
            is_of_more = found is not None and operands[0].ndim > len(found.plan.saved_strides[0])
            if sizes or is_of_more:
                operands = [each.contiguous() for each in _expanded(operands, like, sizes)]
                if found is None:
                    saved = [*_expanded(saved[:-1], saved, sizes), saved[-1]]
                else:
                    rest = *options, found.candidates[0].name
                    *saved, used = self._operation.call(operands[: self.arity], rest)
                return self.call(operands, (*saved, *options, used, *flags))
        operands, _ = self._split_returned(operands, flags)
        function = self._function(arguments)
        with eager_mode(grad=True):
            derived = derivative(self._kinds, function, operands, flags)
            return self._apart(derived, operands, flags)

    def _function(self, arguments: Sequence[Any]) -> Function:
        """The differentiable outputs of the operation as a function of its inputs, in eager mode."""
        operands, options, used, _ = self._parts(arguments)
        strategy = self._strategy(int(used), operands)

        def outputs(*inputs: Tensor) -> Tensors:
            found = self._operation.eagerly(*inputs, *options, strategy)
            return tuple(found[: self._operation.differentiable])

        return outputs

    def of_computed(
        self,
        found: FoundPlan,
        inputs: Tensors,
        outputs: Tensors,
        kept: Tensors,
        arguments: Sequence[Any],
    ) -> Tensors | None:
        """The derivative of what a plan has computed, of these fields; None where that is to be again."""
        return self._of_computed(Computed(found, inputs, outputs, kept), arguments, (), ())

    def _of_computed(
        self,
        computed: Computed,
        arguments: Sequence[Any],
        like: Sequence[Tensor],
        sizes: Sequence[int],
    ) -> Tensors | None:
        """The same, of operands with more dimensions, of such sizes, than what they are like has."""
        operands, options, used, flags = self._parts(arguments)
        operation, arity, saved = self._operation, self.arity, arguments[1 : 1 + self.saves]
        inputs, places = computed.inputs[:arity], operation.taken[: operation.differentiable]
        if operation.constants and len(self._kinds) > 1:
            return None
        if sizes:
            computed = computed.repeated(sizes)
        gradient, needed = operation.derivatives["backward",], [True] * arity

        def pull(cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
            return gradient.call([*inputs, *cotangents], (*saved, *options, used, needed))

        own, returned = self._split_returned(operands, flags)
        is_of_gradient = self._kinds[0] == "backward"

        def gradients() -> Sequence[Tensor]:
            if is_of_gradient and all(flags[0]):
                return _expanded(returned, inputs, sizes)
            first = arity if is_of_gradient else len(own) - len(places)
            return _expanded(pull(own[first : first + len(places)]), inputs, sizes)

        every = _expanded(own, like, sizes)
        return plan_derivatives.derivative(
            self._kinds, computed, every, flags, places, gradients, pull
        )

    def _apart(
        self,
        derived: Sequence[Tensor],
        operands: Sequence[Tensor],
        flags: Sequence[Sequence[bool]],
    ) -> list[Tensor]:
        return list(self._operation.laid_out(apart(derived, operands), self._places(flags)))

    def _places(self, flags: Sequence[Sequence[bool]]) -> Iterable[int]:
        """For each tensor returned, the place of the output whose layout it has; negative: by rows."""
        if self._kinds == ("forward",):
            return range(self._operation.differentiable)
        if self._kinds == ("backward", "backward"):
            return itertools.compress(itertools.count(-self.arity), flags[-1])
        return itertools.repeat(-1)

    def _like(
        self, inputs: Sequence[Value], outputs: Sequence[Value], flags: Sequence[Sequence[bool]]
    ) -> list[Value]:
        """For each operand that input, or differentiable output, of the operation that it is like."""
        every = [*inputs, *outputs] if self._kinds[0] == "backward" else [*inputs]
        if self._kinds == ("backward",):
            return every
        like = [*every, *itertools.compress(every, flags[-1])]
        return [*like, *itertools.compress(inputs, flags[0])] if len(flags) > 1 else like

    def _split_returned(
        self, operands: Sequence[Tensor], flags: Sequence[Sequence[bool]]
    ) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The operands before those which the first derivative, if this is the second, has returned."""
        if len(self._kinds) == 1:
            return operands, []
        of_first = self._operation.differentiable if self._kinds[0] == "forward" else sum(flags[0])
        count = len(operands) - of_first
        return operands[:count], operands[count:]

    def depths(self, call: Call, tensors: Sequence[Tensor], dims: Dims) -> list[int]:
        if self._kinds not in _OF_MANY:
            return super().depths(call, tensors, dims)
        sizes = [each.ndim - (dim is not None) for each, dim in zip(tensors, dims, strict=True)]
        outputs = sizes[call.count :][: self._operation.differentiable]
        like = self._like(sizes[: self.arity], outputs, call.rest[-len(self._kinds) :])
        return [each - of for each, of in zip(sizes, like, strict=False)]

    def takes_many(self, tensors: Sequence[Tensor]) -> bool:
        return self._kinds in _OF_MANY and not is_recorded_below(tensors)

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        operands, options, _, flags = self._parts(arguments)
        *_, kind = self._kinds
        if kind == "backward" or len(self._kinds) > 1:  # gradients, or their tangents
            of_kind = flags[-1] if kind == "backward" else flags[0]
            like: Sequence[Tensor] = list(itertools.compress(operands, of_kind))
        else:
            outputs = self._operation.shaped(*operands[: self._operation.arity], *options)
            like = outputs[: self._operation.differentiable]
        empty = [each.new_empty(each.shape) for each in like]
        return list(self._operation.laid_out(empty, self._places(flags)))

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arguments[0], arguments[1:]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(list(operands), *rest)

    def derive(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        kinds = *self._kinds, kind
        if kinds in self._operation.derivatives:
            operands = [*at.operands, *given, *at.outputs]
            return self._operation.derivatives[kinds].call(operands, (*at.rest, list(needed)))
        if torch._C._are_functorch_transforms_active() or is_traced():
            raise NotImplementedError(
                f"{' of '.join(reversed(kinds))} has no operator: in a compiled function there are second "
                "derivatives, of which the first is a backward; eager mode has all orders"
            )
        return self._third_derivative(kind, at, given, needed)

    def _third_derivative(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        """As `derive`, from the operation as a function: there are operators of two orders."""
        flags = at.rest[-len(self._kinds) :]
        own, returned = self._split_returned(at.operands, flags)
        of_own, of_returned = needed[: len(own)], needed[len(own) :]
        if kind == "forward":
            given = given[: sum(of_own)]
        kinds, function = (*self._kinds, kind), self._function((at.operands, *at.rest))
        with eager_mode(grad=torch.is_grad_enabled()):
            found = composed_derivative(kinds, function, [*flags, of_own])(*own, *given)
        if kind == "forward":
            return found
        # What the first derivative has returned is a function of the others.
        return *found, *map(torch.zeros_like, itertools.compress(returned, of_returned))

    def _parts(
        self, arguments: Sequence[Any]
    ) -> tuple[Sequence[Tensor], Sequence[Any], Tensor, Sequence[Sequence[bool]]]:
        operands, rest = self.split(arguments)
        *options, used = rest[self.saves : -len(self._kinds)]
        return operands, options, used, rest[-len(self._kinds) :]

    def _strategy(self, used: int, operands: Sequence[Tensor]) -> Strategy:
        """That which computed the operation: by its number, or that of the plan."""
        if used >= 0:
            return _USED[used]
        found: FoundPlan | None = used_plan(used)  # which may be forgotten
        candidates = found.candidates if found else self._operation.candidates("auto", operands)
        return candidates[0]


def _sizes_before(operands: Sequence[Tensor], like: Sequence[Tensor]) -> tuple[int, ...]:
    """The sizes of dimensions before those that operands have by what they are like."""
    pairs = zip(operands, like, strict=True)
    sizes = [each.shape[: each.ndim - of.ndim] for each, of in pairs if each.ndim > of.ndim]
    # PyTorch's `broadcast_shapes` takes longer than the derivative of a small matrix.
    return np.broadcast_shapes(*sizes) if sizes else ()


def _expanded(
    operands: Sequence[Tensor], like: Sequence[Tensor], sizes: Sequence[int]
) -> Sequence[Tensor]:
    """The operands with all of those dimensions."""
    if not sizes:
        return operands
    return [each.expand(*sizes, *of.shape) for each, of in zip(operands, like, strict=False)]


_USED: list[Strategy] = []
"""The strategies that operators have used, by the number that stands for each in a graph."""


def number_of(strategy: Strategy) -> int:
    """The number that stands for a strategy in a graph.

    Example:
        >>> from strategies import registry
        >>> number_of(registry.get("qr_pinv")) == number_of(registry.get("qr_pinv"))
        True
    """
    if strategy not in _USED:
        _USED.append(strategy)
    return _USED.index(strategy)
