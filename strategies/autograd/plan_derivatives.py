"""Derivatives of an operator that a plan has computed, from what that has kept.

They are those of `strategies.autograd.derivatives` without the operation computed again. With G, the
gradient of ⟨c, f(A)⟩, and D that of a second derivative: ⟨G, D⟩ has partial gradients by A, by the outputs,
which `FastPath.second_backward` and the explicit gradient read, and by c. What those by outputs are
pulled back to is added. As second derivatives are symmetric, the sum is the derivative of G along D, too;
but not at a deficient rank, which A + εD may leave. There that is the tangent of the explicit gradient.
"""

from collections.abc import Callable, Sequence
from itertools import compress

import torch
from torch import Tensor

from strategies.autograd.derivatives import (
    duals,
    filled,
    forward_level,
    spread,
    tangents_of,
    total,
)
from strategies.autograd.fast_path_node import (
    Computed,
    FoundPlan,
    explicit_gradients,
    second_gradients,
)
from strategies.autograd.rule import Gradients, Tensors
from strategies.kernels.cpu.plans import Plan

_MISSING = torch.empty(0, device="cpu")

Pull = Callable[[Sequence[Tensor]], Sequence[Tensor]]
"""The gradients of all inputs, from cotangents of the differentiable outputs of the operator."""


def derivative(
    kinds: Sequence[str],
    computed: Computed,
    operands: Sequence[Tensor],
    flags: Sequence[Sequence[bool]],
    places: Sequence[int],
    gradients: Callable[[], Sequence[Tensor]],
    pull: Pull,
) -> Tensors | None:
    """As `strategies.autograd.derivatives.derivative`; None where it has to be computed in that way.

    Not for the gradient of the operation alone. `places` says which outputs of the plan the differentiable
    ones of the operator are; `gradients` are of all inputs, from the cotangents among the operands, and
    `pull` has the same from others.
    """
    of_first = flags[0]
    arity = len(of_first)
    given = operands[arity:]
    if tuple(kinds) == ("forward",):
        own = computed.found.fast_path.tangents
        constants = [None] * (len(computed.inputs) - arity)
        tangents = own and own(computed, (*spread(given, of_first), *constants))
        return tangents[: len(places)] if tangents else None
    of_second = flags[1]
    further: Gradients = ()
    if kinds[0] == "forward":
        directions, cotangents = spread(given, of_first), given[sum(of_first) :]
    else:
        cotangents, moved = given[: len(places)], given[len(places) :]
        every = spread(moved, of_second if kinds[1] == "forward" else of_first)
        directions, further = every[:arity], every[arity:]
        if kinds[1] == "forward" and computed.found.plan.any_rank:
            return _tangents_of_gradient(
                computed, places, cotangents, directions, further, of_first
            )
    found = gradients()
    of_inputs, of_cotangents = _derivatives_of_gradient(
        computed, places, found, pull, cotangents, directions, further
    )
    if kinds[0] == "forward":
        return tuple(compress((*of_inputs, *compress(found, of_first)), of_second))
    if kinds[1] == "forward":
        return tuple(compress(of_inputs, of_first))
    return tuple(compress((*of_inputs, *of_cotangents), of_second))


def recalled(
    found: FoundPlan, inputs: Tensors, taken: Sequence[int], saved: Sequence[Tensor]
) -> Computed | None:
    """What the plan has computed; None if that is not of these inputs.

    Outputs that the operator does not return are empty.
    """
    plan = found.plan
    *outputs, workspace = saved
    if not isinstance(plan, Plan):
        return None
    size = plan.keeps[0].bytes if plan.keeps else 0
    # Of mapped inputs there are more matrices than the plan is for.
    pairs = zip(inputs, plan.saved_strides, strict=False)
    if workspace.numel() < size or any(each.ndim != len(own) for each, own in pairs):
        return None
    every: list[Tensor] = [_MISSING] * len(plan.outputs)
    for i, output in zip(taken, outputs, strict=True):
        every[i] = output
    return Computed(found, inputs, tuple(every), (workspace[:size],) if size else ())


def _tangents_of_gradient(
    computed: Computed,
    places: Sequence[int],
    cotangents: Sequence[Tensor],
    directions: Gradients,
    further: Gradients,
    needed: Sequence[bool],
) -> Tensors | None:
    """The tangents of the explicit gradient along directions and further ones of c; None if it has none."""
    found, inputs = computed.found, computed.inputs
    if found.fast_path.explicit is None or found.fast_path.tangents is None:
        return None
    of_outputs: Tensors | None = ()
    if any(each is not None for each in directions):
        of_outputs = found.fast_path.tangents(computed, directions)
    if of_outputs is None:
        return None
    with forward_level():
        moved = computed._replace(
            inputs=duals(inputs, directions), outputs=duals(computed.outputs, of_outputs)
        )
        of_place = dict(zip(places, duals(cotangents, further), strict=True))
        given = tuple(map(of_place.get, range(len(computed.outputs))))
        gradients = explicit_gradients(found, moved.saved, given, needed)
        return tangents_of([each for each in gradients if each is not None])


def _derivatives_of_gradient(
    computed: Computed,
    places: Sequence[int],
    gradients: Sequence[Tensor],
    pull: Pull,
    cotangents: Sequence[Tensor],
    directions: Gradients,
    further: Gradients,
) -> tuple[Tensors, Tensors]:
    """The derivative of G along directions and further ones of c, and the gradient of ⟨G, D⟩ by c."""
    plan, saved, arity = computed.found.plan, computed.saved, len(computed.inputs)
    of_place = dict(zip(places, cotangents, strict=True))
    given = tuple(map(of_place.get, range(len(computed.outputs))))
    second: Gradients = (None,) * (len(saved) + len(given))
    is_moved = [each is not None for each in directions]
    if any(is_moved):
        needed = [_is_differentiable(each) for each in (*computed.inputs, *saved[arity:], *given)]
        second = second_gradients(computed, tuple(gradients), given, directions, needed, is_moved)
    of_outputs = dict(zip(plan.saved, second[arity:], strict=False))
    through = [
        total(of_outputs.get(i), each)
        for i, each in zip(places, further or [None] * len(places), strict=True)
    ]
    of_inputs: Sequence[Tensor | None] = second[:arity]
    if any(each is not None for each in through):
        of_inputs = [*map(total, of_inputs, pull(filled(through, cotangents)))]
    of_cotangents = [second[len(saved) + i] for i in places]
    return filled(of_inputs, computed.inputs), filled(of_cotangents, cotangents)


def _is_differentiable(tensor: Tensor | None) -> bool:
    """Whether it is a number's tensor: not what is kept, nor a rank."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())
