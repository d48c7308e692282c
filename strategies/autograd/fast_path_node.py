"""What the fast path has computed, for autograd: its gradient by the plan, or by the generic path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from strategies.autograd.choice import first_that_can
from strategies.autograd.derivatives import pulled_back
from strategies.autograd.precision import full_precision
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.cpu.plans import Plan
from strategies.kernels.cuda import plan as cuda
from strategies.kernels.memory import is_addressable, with_memory
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from strategies.autograd.fast_path import FastPath

__all__ = [
    "Computed",
    "FoundPlan",
    "apply",
    "differentiated",
    "is_constant",
    "is_plain",
    "is_readable",
]

Tensors = tuple[Tensor, ...]
Gradients = tuple[Tensor | None, ...]

_TYPES = Tensor, Parameter

_C: Any = torch._C


class FoundPlan(NamedTuple):
    """A plan for a call, and what was asked for.

    Attributes:
        plan: of the kernels.
        copies: whether inputs are to be made contiguous.
        fast_path: of the operation.
        candidates: the strategies that the generic path would try.
        tolerances: atol and rtol, if they were given.
    """

    plan: Plan | cuda.Plan
    copies: bool
    fast_path: FastPath
    candidates: tuple[Strategy, ...]
    tolerances: tuple[float, ...] = ()


class Computed(NamedTuple):
    """What a plan has computed.

    Attributes:
        found: the plan.
        inputs: as it has read them.
        outputs: of the operation.
        kept: what the backward reads beside these; None where the plan declined, and the generic path
            has computed the outputs.
    """

    found: FoundPlan
    inputs: Tensors
    outputs: Tensors
    kept: Tensors | None

    @property
    def strategy(self) -> Strategy:
        return self.found.candidates[0]

    @property
    def factors(self) -> Tensors:
        """The parts of what is kept, as the kernel on the CPU has written them; none of other plans."""
        plan = self.found.plan
        return plan.parts(*self.kept) if isinstance(plan, Plan) and self.kept else ()

    def factored(self) -> PseudoInverse:
        """The pseudo-inverse of the first input by the first strategy that takes its rank."""
        A, (atol, rtol) = self.inputs[0], self.found.tolerances or (None, None)
        return first_that_can(
            self.found.candidates, lambda strategy: strategy.factor(A, atol=atol, rtol=rtol)
        )

    def gradient_of(self, output: int) -> Tensor | None:
        """The gradient of the first input from ones as the cotangent of an output; None if declined."""
        plan = self.found.plan
        cotangents = [
            torch.ones_like(self.outputs[i]) if i == output else plan.zeros(i)
            for i in plan.cotangents
        ]
        assert self.kept is not None
        saved = *self.inputs, *[self.outputs[i] for i in plan.saved], *self.kept
        gradients = plan.backward(saved, cotangents)
        return None if gradients is None else gradients[0]


def is_plain() -> bool:
    """Whether nothing but autograd sees what is computed now."""
    return not (
        _C._are_functorch_transforms_active()
        or _C._len_torch_dispatch_stack()
        or _C._len_torch_function_stack()
    )


def is_readable(tensor: Any) -> bool:
    """Whether the numbers are at the address of the tensor, as its strides say."""
    return (
        type(tensor) in _TYPES
        and (tensor.is_cpu or tensor.is_cuda)
        and is_addressable(tensor)
        # The level is that of all threads.
        and (forward_ad._current_level < 0 or forward_ad.unpack_dual(tensor).tangent is None)
    )


def is_constant(*tensors: Tensor) -> bool:
    """Whether what is computed of these has no derivatives: below all levels, without tangents and graphs.

    Example:
        >>> is_constant(torch.ones(2)), is_constant(torch.ones(2, requires_grad=True))
        (True, False)
    """
    is_recorded = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    return not is_recorded and is_plain() and all(map(is_readable, tensors))


class _FastPathNode(torch.autograd.Function):
    """What was computed, for autograd."""

    @staticmethod
    def forward(ctx: Any, given: tuple[FoundPlan, Tensors, Tensors], *inputs: Tensor) -> Tensors:
        ctx.found, outputs, kept = given
        plan, unread = ctx.found.plan, ctx.found.fast_path.unread
        read = [None if i in unread else each for i, each in enumerate(inputs)]
        ctx.save_for_backward(*read, *[outputs[i] for i in plan.saved], *kept)
        if plan.constant:
            ctx.mark_non_differentiable(*[outputs[i] for i in plan.constant])
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        found, saved = ctx.found, ctx.saved_tensors
        gradients: Sequence[Tensor | None] | None = None
        if is_plain() and not torch.is_grad_enabled():
            gradients = _gradients(found.plan, saved, cotangents)
        if gradients is None:
            arity, needed = found.plan.arity, ctx.needs_input_grad[1:]
            inputs, outputs = saved[:arity], saved[arity : arity + len(found.plan.saved)]
            gradients = differentiated(found, inputs, outputs, cotangents, needed)
        return (None, *gradients)


# `Function.apply` would look for transforms again, and for wrappers that they have left behind.
apply: Callable[..., Tensors] = super(torch.autograd.Function, _FastPathNode).apply


def _gradients(
    plan: Plan | cuda.Plan, saved: Tensors, cotangents: Sequence[Tensor | None]
) -> list[Tensor] | None:
    """By the fast path; None if some cotangent is not a usual one."""
    used: list[Any] = []
    for i, cotangent in enumerate(cotangents):
        if i in plan.ignored:
            continue
        if cotangent is None:
            if i in plan.cotangents:
                used.append(None if i in plan.optional else plan.zeros(i))
        elif i in plan.cotangents and is_readable(cotangent):
            used.append(cotangent)
        else:
            return None
    return plan.backward(saved, used)


def differentiated(
    found: FoundPlan,
    inputs: Tensors,
    outputs: Tensors,
    cotangents: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """By the generic path, as functions of inputs, outputs and cotangents where that is asked for."""
    fast_path = found.fast_path
    if fast_path.explicit is not None and (torch.is_grad_enabled() or fast_path.unread):
        return _explicit_gradients(found, inputs, outputs, cotangents, needed)

    def general(*inputs: Tensor) -> Tensors:
        return fast_path.general(found.candidates, *inputs, *found.tolerances)

    return list(pulled_back(general, inputs, tuple(cotangents), needed))


def _explicit_gradients(
    found: FoundPlan,
    inputs: Gradients,
    saved: Tensors,
    cotangents: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """By the explicit gradient, of the inputs that it reads and of the saved outputs."""
    explicit, plan = found.fast_path.explicit, found.plan
    assert explicit is not None
    outputs = tuple(
        saved[plan.saved.index(i)] if i in plan.saved else None for i in range(max(plan.saved) + 1)
    )
    used = tuple(
        plan.zeros(i) if (cotangent := cotangents[i]) is None else with_memory(cotangent)
        for i in plan.cotangents
        if cotangents[i] is not None or i not in plan.optional
    )

    with full_precision(used[0].device, used[0].dtype):
        computed = first_that_can(
            found.candidates,
            lambda strategy: explicit(strategy, inputs, outputs, used, *found.tolerances),
        )
    return [each if need else None for each, need in zip(computed, needed, strict=True)]
