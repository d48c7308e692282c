"""Derivatives of an operator that a plan has computed, from what that has kept.

They are those of `strategies.autograd.derivatives` without the operation computed again. With G, the
gradient of ⟨c, f(A)⟩, and D that of a second derivative: ⟨G, D⟩ has partial gradients by A, by the outputs,
which `FastPath.second_backward` and the explicit gradient read, and by c. What those by outputs are
pulled back to is added. As second derivatives are symmetric, the sum is the derivative of G along D, too.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import cast

import torch
from torch import Tensor

from strategies.autograd.fast_path_node import (
    Computed,
    FoundPlan,
    Gradients,
    Tensors,
    second_gradients,
)
from strategies.kernels.cpu.plans import Plan

Pull = Callable[[Sequence[Tensor]], Sequence[Tensor]]
"""The gradients of all inputs, from cotangents of the differentiable outputs of the operator."""


def derivative(
    kinds: Sequence[str],
    found: FoundPlan,
    operands: Sequence[Tensor],
    flags: Sequence[Sequence[bool]],
    returned: tuple[Sequence[int], int | None],
    saved: Sequence[Tensor],
    pull: Pull,
) -> Tensors | None:
    """As `strategies.autograd.derivatives.derivative`; None where it has to be computed in that way.

    Args:
        kinds: as there; not the gradient of the operation alone.
        found: the plan.
        operands: as there.
        flags: as there.
        returned: which outputs of the plan those of the operator are, and how many have derivatives.
        saved: the outputs of the operator, and the workspace.
        pull: the gradient of the operator.
    """
    taken, differentiable = returned
    arity, of_first, places = found.plan.arity, flags[0], taken[:differentiable]
    inputs, given = tuple(operands[:arity]), operands[arity:]
    if (computed := _recalled(found, inputs, taken, saved)) is None:
        return None
    if tuple(kinds) == ("forward",):
        tangents_of = found.fast_path.tangents
        tangents = tangents_of and tangents_of(computed, _spread(given, of_first))
        return tangents[:differentiable] if tangents else None
    of_second = flags[1]
    further: Gradients = ()
    if kinds[0] == "forward":
        directions, cotangents = _spread(given, of_first), given[sum(of_first) :]
    else:
        cotangents, moved = given[: len(places)], given[len(places) :]
        spread = _spread(moved, of_second if kinds[1] == "forward" else of_first)
        directions, further = spread[:arity], spread[arity:]
    gradients, of_inputs, of_cotangents = _derivatives_of_gradient(
        computed, places, pull, cotangents, directions, further
    )
    if kinds[0] == "forward":
        return tuple(compress((*of_inputs, *compress(gradients, of_first)), of_second))
    if kinds[1] == "forward":
        return tuple(compress(of_inputs, of_first))
    return tuple(compress((*of_inputs, *of_cotangents), of_second))


def _recalled(
    found: FoundPlan, inputs: Tensors, taken: Sequence[int], saved: Sequence[Tensor]
) -> Computed | None:
    """What the plan has computed; None if that is not of these inputs, or not for second derivatives.

    Outputs that the operator does not return are empty.
    """
    plan = found.plan
    *outputs, workspace = saved
    # Second derivatives by formulas for a rank that a tolerance truncates are not symmetric.
    if not isinstance(plan, Plan) or (found.is_of_any_rank and found.tolerances):
        return None
    size = plan.keeps[0].bytes if plan.keeps else 0
    # Of mapped inputs there are more matrices than the plan is for.
    pairs = zip(inputs, plan.saved_strides, strict=False)
    if workspace.numel() < size or any(each.ndim != len(own) for each, own in pairs):
        return None
    of_place, missing = dict(zip(taken, outputs, strict=True)), inputs[0].new_empty(0)
    every = tuple([of_place.get(i, missing) for i in range(len(plan.outputs))])
    return Computed(found, inputs, every, (workspace[:size],) if size else ())


def _derivatives_of_gradient(
    computed: Computed,
    places: Sequence[int],
    pull: Pull,
    cotangents: Sequence[Tensor],
    directions: Gradients,
    further: Gradients,
) -> tuple[Sequence[Tensor], Tensors, Tensors]:
    """G, its derivative along directions and further ones of c, and the gradient of ⟨G, D⟩ by c."""
    found, inputs, kept = computed.found, computed.inputs, computed.kept or ()
    plan = cast(Plan, found.plan)
    arity, count = len(inputs), len(plan.outputs)
    read = [None if i in found.fast_path.unread else each for i, each in enumerate(inputs)]
    saved = *read, *[computed.outputs[i] for i in plan.saved], *kept
    of_place = dict(zip(places, cotangents, strict=True))
    given = tuple([of_place.get(i) for i in range(count)])
    gradients = pull(cotangents)
    second: Gradients = (None,) * (len(saved) + count)
    is_moved = [each is not None for each in directions]
    if any(is_moved):
        needed = [_is_differentiable(each) for each in (*saved, *given)]
        second = second_gradients(
            found, saved, tuple(gradients), given, directions, needed, is_moved
        )
    of_outputs = dict(zip(plan.saved, second[arity:], strict=False))
    through = [
        _sum(of_outputs.get(i), each)
        for i, each in zip(places, further or [None] * len(places), strict=True)
    ]
    of_inputs: Sequence[Tensor | None] = second[:arity]
    if any(each is not None for each in through):
        of_inputs = [*map(_sum, of_inputs, pull(_filled(through, cotangents)))]
    of_cotangents = [second[len(saved) + i] for i in places]
    return gradients, _filled(of_inputs, inputs), _filled(of_cotangents, cotangents)


def _is_differentiable(tensor: Tensor | None) -> bool:
    """Whether it is a number's tensor: not what is kept, nor a rank."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def _spread(tensors: Iterable[Tensor], flags: Sequence[bool]) -> Gradients:
    """The tensors where the flags are; None elsewhere."""
    in_turn = iter(tensors)
    return tuple([next(in_turn) if flag else None for flag in flags])


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _filled(tensors: Iterable[Tensor | None], like: Sequence[Tensor]) -> Tensors:
    """Zeros for what is missing."""
    pairs = zip(tensors, like, strict=True)
    return tuple([torch.zeros_like(of) if each is None else each for each, of in pairs])
