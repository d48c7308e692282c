"""The derivatives to all orders of `strategies.formulas.quadratic`, in every mode."""

from typing import Any

from torch import Tensor

from strategies.autograd.nodes import is_opaque
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.transforms import AtOneLevel, at_all_levels, forward_rule
from strategies.formulas.quadratic import BilinearEquation


def push(equation: BilinearEquation, Y: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of Y from that of A, differentiable in both."""
    return _mapped(equation, Y, tangent, pulls=False)


def pull(equation: BilinearEquation, Y: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of A from that of Y, differentiable in both."""
    return _mapped(equation, Y, cotangent, pulls=True)


def _mapped(equation: BilinearEquation, Y: Tensor, argument: Tensor, *, pulls: bool) -> Tensor:
    compute = equation.pull if pulls else equation.push
    if any(map(is_opaque, (Y, argument))):
        return compute(Y, argument)

    def outputs(*tensors: Tensor) -> Tensors:
        return (compute(*tensors),)

    return at_all_levels(_Map, (equation, pulls), outputs, (Y, argument))[0]


class _Map(AtOneLevel):
    """`pull` or `push`, linear in the last argument, which derivatives therefore do not read."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, (ctx.equation, ctx.pulls), Y, _ = inputs
        ctx.save_for_backward(Y, *output)
        ctx.save_for_forward(Y, *output)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Gradients:
        Y, output = ctx.saved_tensors
        adjoint = _mapped(ctx.equation, Y, cotangent, pulls=not ctx.pulls)
        tangent, gradient = (adjoint, output) if ctx.pulls else (output, adjoint)
        return None, None, -ctx.equation.first_adjoint(tangent, gradient), adjoint

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, of_Y: Tensor | None, moved: Tensor | None) -> Tensors:
        equation, pulls = ctx.equation, ctx.pulls

        def compute(saved: Tensors, tangents: Gradients) -> Tensors:
            Y, output = saved
            of_Y, moved = tangents
            if of_Y is not None:
                second = equation.second_adjoint if pulls else equation.second
                made_up_for = -second(of_Y, output)
                moved = made_up_for if moved is None else made_up_for + moved
            assert moved is not None
            return (_mapped(equation, Y, moved, pulls=pulls),)

        return forward_rule(compute, ctx.saved_tensors, (of_Y, moved))
