"""What a call does: results or an error, gradients, warnings, and what became of its operands."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import modes
from .calls import TRACERS, WORDS, Call
from .operands import Operand

FIELDS = {
    "lu": ("P", "L", "U"),
    "lu_factor": ("LU", "pivots"),
    "lu_factor_ex": ("LU", "pivots", "info"),
    "lstsq": ("solution", "residuals", "rank", "singular_values"),
    "slogdet": ("sign", "logabsdet"),
}
DIFFERENTIATED = {"lu": ("L", "U"), "slogdet": ("sign", "logabsdet")}
"""Of which results gradients are asked for; by default of the first."""

NAMES_IN_TORCH = {"pinv": ("input",), "lstsq": ("input", "b")}
"""Where torch takes other names than those which its documentation gives."""


@dataclass
class Outcome:
    """What a call did."""

    error: Exception | None = None
    stage: str = "forward"  # or "backward": where it was raised, or how far it came
    results: dict[str, Tensor] = field(default_factory=dict)
    gradients: list[Tensor | None] = field(
        default_factory=list
    )  # by a random cotangent; or tangents
    warned: list[str] = field(default_factory=list)  # categories and first words
    mutated: list[int] = field(default_factory=list)  # operands with other entries than before
    shared: list[str] = field(default_factory=list)  # results in memory of an operand
    types: list[str] = field(default_factory=list)  # of the results, of operands of a subclass


def outcome(call: Call, function: Callable[..., Any]) -> Outcome:
    """What a function does when it is called so; the function takes no `strategy=`."""
    found = Outcome()
    leaves = [each.leaf() for each in call.operands]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _run(call, function, leaves, found)
        except Exception as error:  # noqa: BLE001 - whatever it is, torch has to raise the like
            found.error = error
    found.warned = sorted(
        {
            f"{each.category.__name__}: {str(each.message)[:40]}"
            for each in caught
            if each.category is not DeprecationWarning  # torch's, of its own parts
        }
    )
    exactly = {"rtol": 0, "atol": 0, "equal_nan": True}
    found.mutated = [
        i
        for i, (each, leaf) in enumerate(zip(call.operands, leaves, strict=True))
        if isinstance(each, Operand) and not torch.allclose(each.base, leaf.detach(), **exactly)
    ]
    return found


def _run(call: Call, function: Callable[..., Any], leaves: list[Any], found: Outcome) -> None:
    is_torch = getattr(torch.linalg, call.operation) is function
    names = NAMES_IN_TORCH.get(call.operation, ("A", "B")) if is_torch else ("A", "B")

    def apply(*operands: Any) -> Any:
        if call.by_name:
            return function(**dict(zip(names, operands, strict=False)), **call.options)
        return function(*operands, **call.options)

    def keep(function: Callable[..., Any]) -> list[Any]:
        operands = [each.view(leaf) for each, leaf in zip(call.operands, leaves, strict=True)]
        _keep(call, function(*operands), operands, found)
        return operands

    match call.mode:
        case "plain":
            keep(apply)
        case "no_grad" | "inference":
            with torch.no_grad() if call.mode == "no_grad" else torch.inference_mode():
                keep(apply)
        case "vmap":
            keep(torch.func.vmap(apply))
        case "subclass":
            keep(lambda *given: apply(*map(_as_own, given)))
            found.types = [type(value).__name__ for value in found.results.values()]
            found.results = {
                name: value.as_subclass(Tensor) for name, value in found.results.items()
            }
        case word if word in WORDS:
            operands = keep(apply)
            found.stage = "backward"
            # Of torch's own compositions reverse mode is right, but for det of third order.
            is_wrong = is_torch and call.operation == "det" and len(word) == 3
            composed = modes.det_by_lu if is_wrong else apply
            word = "r" * len(word) if is_torch else word
            found.gradients = [modes.directional(word, composed, operands, call)]
        case tracer if tracer in TRACERS:
            # What is compared is that the record computes what the function does.
            keep(apply if is_torch else lambda *given: modes.recorded(tracer, apply, given)(*given))
        case "jvp" | "zero tangent":
            with forward_ad.dual_level():
                leaves[:] = [
                    forward_ad.make_dual(leaf, _direction(call, leaf, i))
                    if _is_float(leaf)
                    else leaf
                    for i, leaf in enumerate(leaves)
                ]
                keep(apply)
                duals = {name: forward_ad.unpack_dual(each) for name, each in found.results.items()}
                found.gradients = [duals[name].tangent for name in _differentiated(call)]
                found.results = {name: each.primal for name, each in duals.items()}
        case "backward" | "in place" | "input in place" | "zero cotangent":
            inputs = [leaf.requires_grad_() for leaf in leaves if _is_float(leaf)]
            operands = keep(apply)
            found.stage = "backward"
            results = [found.results[name] for name in _differentiated(call)]
            outputs = [value for value in results if value.requires_grad]
            if call.mode == "in place":
                outputs = [value.mul_(2) for value in outputs]
            if call.mode == "input in place":
                _double(operands, leaves)
            if outputs and inputs:
                cotangents = [_direction(call, value, i) for i, value in enumerate(outputs)]
                found.gradients = list(
                    torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
                )


def _keep(call: Call, returned: Any, operands: list[Any], found: Outcome) -> None:
    names = FIELDS.get(call.operation, ("result",))
    values = returned if isinstance(returned, tuple) else (returned,)
    found.results = dict(zip(names, values, strict=True))
    if call.operation in FIELDS and call.mode != "vmap" and call.mode not in TRACERS:
        found.results = {name: getattr(returned, name) for name in names}
    given = {
        operand.untyped_storage().data_ptr()
        for operand in operands
        if isinstance(operand, Tensor) and operand.numel()
    }
    found.shared = [
        name
        for name, value in found.results.items()
        if value.numel() and value.untyped_storage().data_ptr() in given
    ]


def _differentiated(call: Call) -> tuple[str, ...]:
    return DIFFERENTIATED.get(call.operation, FIELDS.get(call.operation, ("result",))[:1])


class Own(Tensor):
    """A subclass that leaves all to `Tensor`."""


def _as_own(operand: Any) -> Any:
    return operand.as_subclass(Own) if isinstance(operand, Tensor) else operand


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _double(operands: list[Any], leaves: list[Any]) -> None:
    """The operands that are no leaves, which autograd lets nobody change."""
    with torch.no_grad():
        for operand, leaf in zip(operands, leaves, strict=True):
            if isinstance(operand, Tensor) and operand.grad_fn is not None and operand is not leaf:
                operand.mul_(2)


def _direction(call: Call, value: Tensor, number: int) -> Tensor:
    """A cotangent or tangent: random, or zeros without memory, which forward mode makes."""
    if call.mode in ("zero cotangent", "zero tangent"):
        return torch._efficientzerotensor(value.shape, dtype=value.dtype)
    generator = torch.Generator().manual_seed(number)
    return torch.randn(value.shape, dtype=value.dtype, generator=generator)
