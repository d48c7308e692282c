"""The autograd functions that make all orders and modes of differentiation from a `Rule`.

- `_Primal` computes the operation; its backward is `_Cotangent`, its forward mode is `Rule.jvp`.
- `_Cotangent` computes the gradient with the strategy's saved factors; differentiated itself, it is
  the explicit form, so that nothing is silently constant.
- `_Eager` is `_Primal` where no transform of torch.func and no forward mode is on. What takes part in
  those costs more per call than a small factorization does.

`vmap` moves the mapped dimension to the front of every tensor and calls the batched code.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from strategies.autograd.choice import StrategyChoice
from strategies.autograd.computing import computing
from strategies.autograd.copies import with_own_memory, with_own_tangent
from strategies.autograd.derivatives import duals, filled, pulled_back, spread, tangents_of
from strategies.autograd.levels import forward_mode
from strategies.autograd.precision import full_precision
from strategies.autograd.rule import Gradients, Rule, Tensors, saved_without_inverse
from strategies.autograd.tracing import below_transforms, is_mapped_alone
from strategies.autograd.transforms import (
    AtOneLevel,
    at_all_levels,
    forward_rule,
    without_ended_levels,
    without_tangents,
)
from strategies.errors import LinAlgError
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.memory import with_memory, without_entries
from strategies.strategy import Saved, Strategy


def run(rule: Rule, strategy: Strategy, *inputs: Tensor) -> Tensors:
    """The rule's outputs, differentiable in every mode, by the strategy.

    Raises:
        torch.linalg.LinAlgError: naming operation, strategy and batch index of a matrix that is
            singular where full rank is required.
    """
    call = _Call(rule, strategy)
    outputs: Tensors
    if is_transformed():
        outputs = at_all_levels(_Primal, call, call.outputs, inputs, rule.over_batch)
    elif torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        outputs = _Eager.apply(call, *map(without_ended_levels, inputs))
    else:
        outputs = call.forward(inputs)
    return outputs[: call.number_of_outputs]


def is_differentiated(*inputs: object) -> bool:
    """Whether derivatives of what is computed from these tensors may be asked for."""
    if is_transformed():
        if not is_mapped_alone():
            return True
        inputs = tuple(below_transforms(each) for each in inputs if isinstance(each, Tensor))
    return torch.is_grad_enabled() and any(
        isinstance(each, Tensor) and each.requires_grad for each in inputs
    )


def is_forward_alone(choice: StrategyChoice, *inputs: object) -> bool:
    """Whether "auto" is the forward alone, which is that of PyTorch where every strategy has it."""
    return choice == "auto" and not is_differentiated(*inputs)


@dataclasses.dataclass
class _Call:
    """One call of an operation: what its autograd nodes share besides tensors.

    The tensors of the factors are saved as the inputs and outputs are, so that saved-tensor hooks,
    checkpointing and vmap see them. `sources` says where among inputs, outputs and those each is to
    be found again, since a factor may be one of the former itself.
    """

    rule: Rule
    strategy: Strategy
    inverse: PseudoInverse | None = None
    sources: tuple[int, ...] = ()
    number_of_outputs: int = 0

    def outputs(self, *inputs: Tensor) -> Tensors:
        """All outputs, below autograd and forward mode."""
        with torch.no_grad(), forward_mode(on=False):
            return self.forward(inputs)

    def needed_gradients(self, needed: Sequence[bool], *tensors: Tensor) -> Tensors:
        """Of those inputs, from cotangents and what is saved, likewise."""
        count = self.rule.differentiable
        with torch.no_grad(), forward_mode(on=False):
            gradients = self.backward(tensors[:count], tensors[count:], needed)
            return tuple(
                with_own_tangent(gradient, set())
                for gradient, need in zip(gradients, needed, strict=True)
                if need and gradient is not None
            )

    def forward(self, inputs: Tensors) -> Tensors:
        inputs = tuple(map(with_memory, inputs))
        with _InOperation(self.rule.name, inputs[0]):
            outputs, inverse = self.rule.forward(self.strategy, *inputs)
        given = set(map(id, inputs))
        outputs = tuple(with_own_tangent(output, given) for output in outputs)
        inputs = inputs[: self.rule.arity]
        known = [*inputs, *outputs]
        positions = {id(tensor): i for i, tensor in enumerate(known)}
        sources = []
        for tensor in () if inverse is None else inverse.tensors():
            if id(tensor) not in positions:
                positions[id(tensor)] = len(known)
                known.append(tensor)
            sources.append(positions[id(tensor)])
        # Only the form is kept here: the tensors belong to the graph, and are freed with it.
        placeholder = next(_PLACEHOLDERS)
        self.inverse = None if inverse is None else inverse.rebuilt(_PLACEHOLDERS, placeholder)
        self.sources = tuple(sources)
        self.number_of_outputs = len(outputs)
        return tuple(known[len(inputs) :])

    def saved_inputs(self, inputs: Tensors) -> Tensors:
        """The inputs as the graph keeps them: whole, where a factor is one of them."""
        inputs = inputs[: self.rule.arity]
        whole = set(self.sources)
        if self.inverse is not None and self.inverse.holds_matrix():
            whole.add(0)
        saved = self.rule.saved_inputs(inputs, self.inverse)
        return tuple(inputs[i] if i in whole else each for i, each in enumerate(saved))

    def split(self, saved: Tensors) -> tuple[Tensors, Tensors]:
        """Inputs and outputs among the saved tensors."""
        arity = self.rule.arity
        return saved[:arity], saved[arity : arity + self.number_of_outputs]

    def backward(self, cotangents: Tensors, tensors: Tensors, needed: Sequence[bool]) -> Gradients:
        cotangents = tuple(map(with_memory, cotangents))
        inputs, outputs = self.split(tensors)
        inverse = self.inverse
        if inverse is not None:
            inverse = inverse.rebuilt((tensors[i] for i in self.sources), inputs[0])
        with _InOperation(f"the backward of {self.rule.name}", inputs[0]):
            # Only a rule that has saved an inverse reads one.
            saved = Saved(cast(PseudoInverse, inverse), inputs, outputs)
            gradients = self.rule.backward(self.strategy, saved, cotangents, needed)
        given = (*cotangents, *tensors)
        return tuple(
            None if gradient is None else with_own_memory(gradient, given) for gradient in gradients
        )

    def explicit_backward(self, saved: Tensors) -> tuple[Callable[..., Tensors], Tensors]:
        """The explicit gradient as a function of its differentiable arguments, and those."""
        inputs, outputs = self.split(saved)
        count = self.rule.differentiable
        constant = outputs[count:]

        def gradient(*arguments: Tensor) -> Tensors:
            cotangents, rest = arguments[:count], arguments[count:]
            inputs, outputs = rest[: self.rule.arity], (*rest[self.rule.arity :], *constant)
            at = saved_without_inverse(inputs, outputs)
            return self.rule.explicit_backward(self.strategy, at, cotangents)

        return gradient, (*inputs, *outputs[:count])


_PLACEHOLDERS = itertools.repeat(torch.empty(0, 0))


class _InOperation:
    """Full precision, errors that say in which operation they arose, and `computing`."""

    def __init__(self, name: str, like: Tensor) -> None:
        self._name = name
        self._precision = full_precision(like.device, like.dtype)

    def __enter__(self) -> None:
        computing.value += 1
        self._precision.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        computing.value -= 1
        self._precision.__exit__(kind, error, traceback)
        if isinstance(error, LinAlgError):
            raise LinAlgError(f"linalg.{self._name}: {error}") from None


class _Primal(AtOneLevel):
    """The operation."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, call, *operands = inputs
        tensors = call.saved_inputs(tuple(operands))
        ctx.call = call
        ctx.mark_non_differentiable(*output[call.rule.differentiable :])
        ctx.save_for_backward(*tensors, *output)
        ctx.save_for_forward(*tensors, *output)
        # Else every saved factor is given a cotangent of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Gradients:
        return None, *_backward(ctx, cotangents, 2)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Gradients:
        call: _Call = ctx.call

        def compute(saved: Tensors, tangents: Gradients) -> Tensors:
            at = saved_without_inverse(*call.split(saved))
            return call.rule.jvp(call.strategy, at, tangents)

        arity = call.rule.arity
        results = forward_rule(compute, ctx.saved_tensors, tangents[:arity])
        others = len(ctx.saved_tensors) - arity - len(results)
        return (*results, *[None] * others)


class _Eager(torch.autograd.Function):
    """The operation, where only the backward can be asked for."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Tensor) -> Tensors:
        found = call.forward(inputs)
        outputs = found[: call.number_of_outputs]
        ctx.call = call
        ctx.mark_non_differentiable(*outputs[call.rule.differentiable :])
        kept = [*call.saved_inputs(inputs), *found]
        for i in call.rule.unread:
            kept[call.rule.arity + i] = without_entries(found[i])
        ctx.save_for_backward(*kept)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Gradients:
        return _backward(ctx, cotangents, 1)


def _backward(ctx: Any, cotangents: Gradients, first: int) -> Gradients:
    """The gradients of what follows the first argument, the inputs from position `first` on."""
    needed = ctx.needs_input_grad[first:]
    if all(each is None for each in cotangents):
        return (None,) * (1 + len(needed))
    arity = ctx.call.rule.arity
    constants = [None] * (len(needed) - arity)
    return (None, *_gradients(ctx, cotangents, tuple(needed[:arity])), *constants)


def _gradients(ctx: Any, cotangents: Gradients, needed: tuple[bool, ...]) -> Gradients:
    saved = ctx.saved_tensors
    call: _Call = ctx.call
    count = call.rule.differentiable
    used = filled(cotangents[:count], call.split(saved)[1][:count])
    if any(map(is_opaque, used)):
        function, arguments = call.explicit_backward(saved)
        return function(*used, *arguments)
    if not (torch.is_grad_enabled() or is_transformed()):
        # Nothing differentiates the gradient: a node for it would cost more than small ones do.
        gradients = call.backward(used, saved, needed)
        return tuple(g if need else None for g, need in zip(gradients, needed, strict=True))
    compute = functools.partial(call.needed_gradients, needed)
    return spread(at_all_levels(_Cotangent, (call, needed), compute, [*used, *saved]), needed)


class _Cotangent(AtOneLevel):
    """The gradient of the operation with respect to the inputs that need it."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, (ctx.call, ctx.needed), *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)

    @staticmethod
    def _explicit(ctx: Any, saved: Tensors) -> tuple[Callable[..., Tensors], Tensors]:
        count = ctx.call.rule.differentiable
        cotangents, saved = saved[:count], saved[count:]
        gradient, rest = ctx.call.explicit_backward(saved)

        def needed_gradients(*arguments: Tensor) -> Tensors:
            pairs = zip(gradient(*arguments), ctx.needed, strict=True)
            return tuple(value for value, need in pairs if need)

        return needed_gradients, (*cotangents, *rest)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Gradients:
        saved = tuple(map(without_ended_levels, ctx.saved_tensors))
        function, arguments = _Cotangent._explicit(ctx, saved)
        with _InOperation(f"the second backward of {ctx.call.rule.name}", arguments[0]):
            gradients = pulled_back(function, arguments, cotangents, ctx.needs_input_grad[2:])
        others = len(ctx.saved_tensors) - len(gradients)
        return (None, None, *gradients, *[None] * others)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Tensors:
        with forward_mode(on=True):
            saved = without_tangents(ctx.saved_tensors)
            function, arguments = _Cotangent._explicit(ctx, saved)
            moved = [None if t is None else with_memory(t) for t in tangents[: len(arguments)]]
            return tangents_of(function(*duals(arguments, moved)))


def is_transformed() -> bool:
    """Whether a torch.func transform or forward mode sees what is computed now."""
    return bool(torch._C._are_functorch_transforms_active()) or forward_ad._current_level >= 0


def is_opaque(tensor: Tensor) -> bool:
    """Whether PyTorch's operators are all that may be done with a tensor, as the explicit form does.

    So it is where a class defines what operators do, and values cannot be read, and where it is batched.
    """
    has_class = torch._C._dispatch_keys(tensor).has(torch._C.DispatchKey.Python)
    return bool(has_class) or is_batched_gradient(tensor)


def is_batched_gradient(tensor: Tensor) -> bool:
    """Whether it is of the vmap of `torch.autograd.grad(is_grads_batched=True)`.

    That maps operators of PyTorch alone, not autograd functions.
    """
    return bool(torch._C._functorch.is_legacy_batchedtensor(tensor))
