"""What the fast path has computed, for autograd: its gradient by the plan, or by the generic path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from strategies.autograd.choice import first_that_can
from strategies.autograd.derivatives import pulled_back, spread
from strategies.autograd.precision import full_precision
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.tracing import are_usual, is_plain, is_readable, resolved
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.cpu.plans import Plan
from strategies.kernels.cuda import plan as cuda
from strategies.kernels.memory import with_memory
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from strategies.autograd.fast_path import FastPath


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

    @property
    def has_second_backward(self) -> bool:
        """Whether `FastPath.second_backward` differentiates the gradient: on the CPU, at full rank."""
        if not isinstance(self.plan, Plan) or self.plan.any_rank:
            return False
        is_small = self.plan.gradients[0].size[-1] <= self.fast_path.second_backward_rows
        return is_small and self.fast_path.second_backward is not None


class Computed(NamedTuple):
    """What a plan has computed.

    Attributes:
        found: the plan.
        inputs: as it has read them.
        outputs: of the operation.
        kept: what the backward reads beside these; None where the plan declined, and the generic path
            has computed the outputs.
        repeats: the sizes of first dimensions of inputs, outputs and factors over which they are the same.
    """

    found: FoundPlan
    inputs: Tensors
    outputs: Tensors
    kept: Tensors | None
    repeats: tuple[int, ...] = ()

    @classmethod
    def of_saved(cls, found: FoundPlan, saved: Gradients) -> Computed:
        """The same from `saved`; None for outputs that are not among that, up to the last that is."""
        plan = found.plan
        inputs, kept = saved[: plan.arity], saved[plan.arity + len(plan.saved) :]
        of_place = dict(zip(plan.saved, saved[plan.arity :], strict=False))
        outputs = tuple(map(of_place.get, range(max(plan.saved, default=-1) + 1)))
        return cls(found, cast(Tensors, inputs), cast(Tensors, outputs), cast(Tensors, kept))

    @property
    def saved(self) -> Gradients:
        """What autograd keeps: the inputs, None for one that is not read, outputs, and what is kept."""
        plan, unread = self.found.plan, self.found.fast_path.unread
        read = (None if i in unread else each for i, each in enumerate(self.inputs))
        return *read, *[self.outputs[i] for i in plan.saved], *(self.kept or ())

    @property
    def strategy(self) -> Strategy:
        return self.found.candidates[0]

    @property
    def factors(self) -> Tensors:
        """The parts of what is kept, as the kernel on the CPU has written them; none of other plans."""
        plan = self.found.plan
        parts = plan.parts(*self.kept) if isinstance(plan, Plan) and self.kept else ()
        return _repeated(parts, self.repeats) if self.repeats else parts

    def repeated(self, sizes: Sequence[int]) -> Computed:
        """The same for each of many derivatives, over first dimensions of these sizes."""
        inputs, outputs = _repeated(self.inputs, sizes), _repeated(self.outputs, sizes)
        return self._replace(inputs=inputs, outputs=outputs, repeats=tuple(sizes))

    def factored(self, of: Tensor | None = None) -> PseudoInverse:
        """The pseudo-inverse of the first input by the first strategy that takes its rank.

        Args:
            of: the matrices of the batch that are meant, bool (...); by default all.
        """
        A, (atol, rtol) = self.inputs[0], self.found.tolerances or (None, None)
        A = A if of is None else A[of]
        return first_that_can(
            self.found.candidates, lambda strategy: strategy.factor(A, atol=atol, rtol=rtol)
        )

    def gradient_of(self, output: int) -> Tensor | None:
        """The gradient of the first input from ones as the cotangent of an output; None if declined."""
        plan = self.found.plan
        cotangents = [plan.zeros(i).fill_(i == output) for i in plan.cotangents]
        assert self.kept is not None
        first = (0,) * len(self.repeats)
        tensors = *self.inputs, *[self.outputs[i] for i in plan.saved]
        gradients = plan.backward((*(each[first] for each in tensors), *self.kept), cotangents)
        return None if gradients is None else gradients[0]


def _repeated(tensors: Sequence[Tensor], sizes: Sequence[int]) -> Tensors:
    return tuple([each.expand(*sizes, *each.shape) for each in tensors])


class _FastPathNode(torch.autograd.Function):
    """What was computed, for autograd."""

    @staticmethod
    def forward(ctx: Any, given: tuple[FoundPlan, Tensors, Tensors], *inputs: Tensor) -> Tensors:
        ctx.found, outputs, kept = given
        ctx.save_for_backward(*Computed(ctx.found, inputs, outputs, kept).saved)
        if constant := ctx.found.plan.constant:
            ctx.mark_non_differentiable(*[outputs[i] for i in constant])
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(each is None for each in cotangents):
            return (None,) * len(ctx.needs_input_grad)
        found, saved = ctx.found, ctx.saved_tensors
        gradients: Sequence[Tensor | None] | None = None
        is_recorded = torch.is_grad_enabled()
        if is_plain() and (not is_recorded or found.has_second_backward):
            gradients = _gradients(found.plan, saved, cotangents)
        if gradients is None or is_recorded:
            needed = ctx.needs_input_grad[1:]
            gradients = differentiated(found, saved, cotangents, needed, gradients or ())
        return (None, *gradients, *[None] * (found.plan.arity - len(gradients)))  # of pivots


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
            continue
        used.append(resolved(cotangent))
        if i not in plan.cotangents or not is_readable(used[-1]):
            return None
    return plan.backward(saved, used)


def differentiated(
    found: FoundPlan,
    saved: Gradients,
    cotangents: Gradients,
    needed: Sequence[bool],
    computed: Sequence[Tensor | None] = (),
) -> Sequence[Tensor | None]:
    """The gradients as functions of inputs, outputs and cotangents, where that is asked for.

    Args:
        found: the plan.
        saved: the inputs, None for one that is not read, outputs, and what is kept.
        cotangents: of the outputs.
        needed: which inputs to give gradients of.
        computed: all gradients by the plan, if it has not declined.
    """
    fast_path, arity = found.fast_path, found.plan.arity
    is_recorded = torch.is_grad_enabled()
    if is_recorded and not computed and found.has_second_backward and are_usual(cotangents):
        with torch.no_grad():
            computed = differentiated(found, saved, cotangents, [True] * arity)
    if computed:
        of_needed: Gradients = _GradientNode.apply((found, needed, computed), *saved, *cotangents)
        return of_needed
    if fast_path.explicit is not None and (is_recorded or fast_path.unread):
        return explicit_gradients(found, saved, cotangents, needed)

    def general(*inputs: Tensor) -> Tensors:
        return fast_path.general(found.candidates, *inputs, *found.tolerances)

    return pulled_back(general, cast(Tensors, saved[:arity]), cotangents, needed)


def explicit_gradients(
    found: FoundPlan, saved: Gradients, cotangents: Gradients, needed: Sequence[bool]
) -> list[Tensor | None]:
    """By the explicit gradient, of the inputs that it reads and of the saved outputs."""
    explicit, plan = found.fast_path.explicit, found.plan
    assert explicit is not None
    _, inputs, outputs, *_ = Computed.of_saved(found, saved)
    used = tuple(
        plan.zeros(i) if (cotangent := cotangents[i]) is None else with_memory(cotangent)
        for i in plan.cotangents
        if cotangents[i] is not None or i not in plan.optional
    )

    with full_precision(used[0].device, used[0].dtype):
        found_gradients = first_that_can(
            found.candidates,
            lambda strategy: explicit(strategy, inputs, outputs, used, *found.tolerances),
        )
    return [each if need else None for each, need in zip(found_gradients, needed, strict=True)]


class _GradientNode(torch.autograd.Function):
    """The gradient, for autograd, as a function of what is saved and of cotangents.

    Its derivative is `FastPath.second_backward`, or else that of the explicit gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        given: tuple[FoundPlan, Sequence[bool], Sequence[Tensor | None]],
        *tensors: Tensor | None,
    ) -> Gradients:
        ctx.found, ctx.needed, gradients = given
        # Copies, since the caller may write into gradients.
        ctx.save_for_backward(*tensors, *[None if g is None else g.clone() for g in gradients])
        ctx.set_materialize_grads(False)
        return tuple(
            each if need else None for each, need in zip(gradients, ctx.needed, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *directions: Tensor | None) -> Gradients:
        found, needed, kept = ctx.found, ctx.needs_input_grad[1:], ctx.saved_tensors
        tensors, gradients = kept[: len(needed)], kept[len(needed) :]
        if all(each is None for each in directions):
            return None, *[None] * len(needed)
        return None, *gradients_of_gradients(
            found, tensors, gradients, directions, needed, ctx.needed
        )


def gradients_of_gradients(
    found: FoundPlan,
    tensors: Tensors,
    gradients: Tensors,
    directions: Gradients,
    needed: Sequence[bool],
    of_gradients: Sequence[bool],
) -> Gradients:
    """`second_gradients` by all tensors that a recorded gradient is of: what is saved, and cotangents."""
    plan = found.plan
    assert isinstance(plan, Plan)
    count = len(tensors) - len(plan.outputs)
    computed, cotangents = Computed.of_saved(found, tensors[:count]), tensors[count:]
    second = second_gradients(computed, gradients, cotangents, directions, needed, of_gradients)
    # To zeros PyTorch adds in place; to its own without memory, as of a modulus, in Python.
    filled = range(plan.arity, plan.arity + len(plan.saved))
    return tuple(
        torch.zeros_like(tensors[i]) if need and each is None and i in filled else each
        for i, (each, need) in enumerate(zip(second, needed, strict=True))
    )


def second_gradients(
    computed: Computed,
    gradients: Gradients,
    cotangents: Gradients,
    directions: Gradients,
    needed: Sequence[bool],
    of_gradients: Sequence[bool],
) -> Gradients:
    """The gradients of gradients that are needed, by what is saved, outputs among that, and by cotangents.

    Directions are the cotangents of the gradients, of which there are those that are flagged. The operation
    has a second backward, or else the explicit gradient.
    """
    second = _by_second_backward(computed, gradients, cotangents, directions)
    if second is not None:
        return tuple(each if need else None for each, need in zip(second, needed, strict=True))
    saved = computed.saved
    tensors = dict(enumerate((*saved, *cotangents)))
    has_gradient = [need and tensors[i] is not None for i, need in enumerate(needed)]
    places = [i for i, has in enumerate(has_gradient) if has]

    def explicit(*arguments: Tensor) -> Tensors:
        every = tuple((tensors | dict(zip(places, arguments, strict=True))).values())
        of_saved, given = every[: len(saved)], every[len(saved) :]
        found = explicit_gradients(computed.found, of_saved, given, of_gradients)
        return cast(Tensors, tuple(found))

    some = tuple(cast(Tensor, tensors[i]) for i in places)
    return spread(pulled_back(explicit, some, directions, [True] * len(places)), has_gradient)


def _by_second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> Gradients | None:
    """Those of what is saved and of cotangents by `FastPath.second_backward`, where it has them."""
    plan, second_backward = computed.found.plan, computed.found.fast_path.second_backward
    directions = tuple([None if each is None else resolved(each) for each in directions])
    given = [each for each in directions if each is not None]
    is_usual = not torch.is_grad_enabled() and are_usual(given)
    if second_backward is None or plan.any_rank or not is_usual:
        return None
    required = set(plan.cotangents) - set(plan.optional)
    cotangents = tuple(
        plan.zeros(i) if each is None and i in required else each
        for i, each in enumerate(cotangents)
    )
    with full_precision(given[0].device, given[0].dtype):
        second = second_backward(computed, gradients, cotangents, directions)
    if second is None:
        return None
    of_inputs, of_outputs, of_cotangents = second
    of_saved = [of_outputs[i] for i in plan.saved]
    return *of_inputs, *of_saved, *[None] * len(computed.kept or ()), *of_cotangents
