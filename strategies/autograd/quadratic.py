"""The derivatives to all orders of `strategies.formulas.quadratic`, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from strategies.autograd.levels import forward_mode, without_tangents
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.transforms import AtOneLevel, at_all_levels
from strategies.formulas.quadratic import QuadraticEquation

__all__ = ["pull", "push"]


def push(equation: QuadraticEquation, Y: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of Y from that of A, differentiable in both."""
    return at_all_levels(_Push, equation, _one(equation.push), (Y, tangent))[0]


def pull(equation: QuadraticEquation, Y: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of A from that of Y, differentiable in both."""
    return at_all_levels(_Pull, equation, _one(equation.pull), (Y, cotangent))[0]


def _one(compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensors]:
    return lambda *tensors: (compute(*tensors),)


class _Linear(AtOneLevel):
    """A map that is linear in its last argument, which its derivatives therefore do not read."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, ctx.equation, Y, _ = inputs
        ctx.save_for_backward(Y, *output)
        ctx.save_for_forward(Y, *output)


class _Push(_Linear):
    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Gradients:
        equation, (Y, tangent) = ctx.equation, ctx.saved_tensors
        gradient = pull(equation, Y, cotangent)
        return None, None, -equation.second_adjoint(tangent, gradient), gradient

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *moved: Tensor | None) -> Tensors:
        with forward_mode(on=True):
            Y, tangent = without_tangents(ctx.saved_tensors)
            return (push(ctx.equation, Y, _total(ctx.equation.second, tangent, *moved)),)


class _Pull(_Linear):
    @staticmethod
    def backward(ctx: Any, direction: Tensor) -> Gradients:
        equation, (Y, gradient) = ctx.equation, ctx.saved_tensors
        tangent = push(equation, Y, direction)
        return None, None, -equation.second_adjoint(tangent, gradient), tangent

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *moved: Tensor | None) -> Tensors:
        def second(gradient: Tensor, of_Y: Tensor) -> Tensor:
            found: Tensor = ctx.equation.second_adjoint(of_Y, gradient)
            return found

        with forward_mode(on=True):
            Y, gradient = without_tangents(ctx.saved_tensors)
            return (pull(ctx.equation, Y, _total(second, gradient, *moved)),)


def _total(
    second: Callable[[Tensor, Tensor], Tensor],
    output: Tensor,
    of_Y: Tensor | None,
    of_argument: Tensor | None,
) -> Tensor:
    """What the map is of, to give the tangent of its output; None is zero."""
    if of_Y is None:
        assert of_argument is not None
        return of_argument
    made_up_for = -second(output, of_Y)
    return made_up_for if of_argument is None else made_up_for + of_argument
