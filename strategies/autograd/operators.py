"""Operators of `torch.library`, which stand for the operations where tensors have no values.

`torch.compile`, `torch.export`, fake and meta tensors follow a call by shapes alone. What a strategy does
depends on values: it refuses a matrix, "auto" goes on to the next, a rank decides what is computed. So
an operation is one operator there, of which a compiler knows the shapes of the outputs and which
operators are its derivatives. Inside, at run time, it is the eager call.

Beside `inv` there are `inv_backward`, its gradient, `inv_forward`, its tangents, and those two of
`inv_backward`. Only tensors of known shapes are handed on from one to the next, which the factors are
not: a derivative computes the operation again, and from there on what eager mode computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.choice import choose, first_that_can
from strategies.autograd.derivatives import derivative, eager_mode
from strategies.autograd.registered import Registered
from strategies.autograd.rule import Tensors
from strategies.interface import Strategy
from strategies.kernels.memory import is_addressable, materialized

__all__ = ["Operator"]

_DERIVATIVES = (
    ("backward",),
    ("forward",),
    ("backward", "backward"),
    ("backward", "forward"),
)


class Operator(Registered):
    """An operation as an operator of `torch.library`, and its derivatives.

    Called with the inputs, the options and the name of a strategy, it gives the outputs.

    Args:
        name: of the operator.
        inputs: the names of the first parameters, tensors, which alone have gradients.
        options: the other parameters as in a schema, "bool left".
        compute: takes the inputs, the options and a strategy; the outputs, by eager calls.
        fake: takes the inputs and the options; tensors of the outputs' shapes and dtypes.
        outputs: how many there are.
        differentiable: how many of these, from the first, carry gradients.
        measured_as: the operation by whose measurements "auto" goes.
        any_rank: "auto" ends with a strategy that takes any rank.

    Example:
        >>> torch.ops.backward_strategies.inv(torch.tensor([[4.0]]), "qr_pinv")[0]
        tensor([[0.2500]])
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        options: str,
        compute: Callable[..., Tensors],
        fake: Callable[..., Tensors],
        *,
        outputs: int = 1,
        differentiable: int = 1,
        measured_as: str = "",
        any_rank: bool = False,
    ) -> None:
        self.arity, self.differentiable = len(inputs), differentiable
        self.eagerly, self.shaped = compute, fake
        self._measured_as, self._any_rank = measured_as or name, any_rank
        parameters = *(f"Tensor {each}" for each in inputs), options, "str strategy"
        super().__init__(name, parameters, f"({', '.join(['Tensor'] * (outputs + 1))})")
        self.derivatives = {
            kinds: _Derivative(self, name, options, kinds) for kinds in _DERIVATIVES
        }

    def __call__(self, *arguments: Any) -> Tensors:
        *outputs, _ = self.operator(*arguments)
        return tuple(outputs)

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        """The outputs, and by which strategy, since that of "auto" may be another in the backward."""
        inputs, (*options, name) = self.split(arguments)

        def run(strategy: Strategy) -> Tensors:
            outputs = self.eagerly(*inputs, *options, strategy)
            return *_apart(outputs, inputs), torch.tensor(_number(strategy))

        candidates = choose(name, self._measured_as, *inputs, any_rank=self._any_rank)
        with eager_mode(grad=False):
            return first_that_can(candidates, run)

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        return *self.shaped(*arguments[:-1]), torch.zeros((), dtype=torch.int64, device="cpu")

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arguments[: self.arity], arguments[self.arity :]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(*operands, *rest)

    def derive(
        self,
        kind: str,
        operands: Sequence[Tensor],
        rest: Sequence[Any],
        outputs: Sequence[Tensor],
        needed: Sequence[bool],
    ) -> Sequence[Tensor]:
        *options, _ = rest
        return self.derivatives[kind,].call(operands, (*options, outputs[-1], list(needed)))


class _Derivative(Registered):
    """The operator that is a derivative of an operation, or of a derivative.

    Its operands are those of what it is the derivative of and, backward, the cotangents of what that
    returns; forward, the tangents of those that are flagged. It returns, backward, gradients of those
    that are flagged; forward, the tangents of what the other returns. Flags of lower orders come first.
    """

    def __init__(
        self, operation: Operator, name: str, options: str, kinds: tuple[str, ...]
    ) -> None:
        self._operation, self._kinds = operation, kinds
        self.arity = operation.arity
        flags = [f"bool[] needed_{i}" for i in range(len(kinds))]
        super().__init__(
            "_".join((name, *kinds)),
            ("Tensor[] operands", options, "Tensor used", *flags),
            "Tensor[]",
        )

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        operands, options, used, flags = self._parts(arguments)
        strategy = _USED[int(used)]

        def outputs_of(*inputs: Tensor) -> Tensors:
            outputs = self._operation.eagerly(*inputs, *options, strategy)
            return tuple(outputs[: self._operation.differentiable])

        with eager_mode(grad=True):
            return list(_apart(derivative(self._kinds, outputs_of, operands, flags), operands))

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        operands, options, _, flags = self._parts(arguments)
        *_, kind = self._kinds
        if kind == "backward":
            pairs = zip(operands, flags[-1], strict=False)
            return [operand.new_empty(operand.shape) for operand, need in pairs if need]
        if len(self._kinds) > 1:  # the tangents of gradients
            pairs = zip(operands, flags[0], strict=False)
            return [operand.new_empty(operand.shape) for operand, need in pairs if need]
        outputs = self._operation.shaped(*operands[: self._operation.arity], *options)
        return list(outputs[: self._operation.differentiable])

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arguments[0], arguments[1:]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(list(operands), *rest)

    def derive(
        self,
        kind: str,
        operands: Sequence[Tensor],
        rest: Sequence[Any],
        outputs: Sequence[Tensor],
        needed: Sequence[bool],
    ) -> Sequence[Tensor]:
        kinds = *self._kinds, kind
        if kinds not in self._operation.derivatives:
            raise NotImplementedError(
                f"{' of '.join(reversed(kinds))} has no operator: in a compiled function there are second "
                "derivatives, of which the first is a backward; eager mode has all orders"
            )
        return self._operation.derivatives[kinds].call(operands, (*rest, list(needed)))

    def _parts(
        self, arguments: Sequence[Any]
    ) -> tuple[Sequence[Tensor], Sequence[Any], Tensor, Sequence[Sequence[bool]]]:
        operands, rest = self.split(arguments)
        *options, used = rest[: -len(self._kinds)]
        return operands, options, used, rest[-len(self._kinds) :]


def _apart(outputs: Sequence[Tensor], given: Sequence[Tensor]) -> Tensors:
    """Outputs in memory of their own, row by row, as `new_empty` of their shapes has it."""
    known = {each.untyped_storage().data_ptr() for each in given if is_addressable(each)}

    def apart(output: Tensor) -> Tensor:
        if not output.numel():
            return output.new_empty(output.shape)
        own = materialized(output.detach()).contiguous()
        return own.clone() if own.untyped_storage().data_ptr() in known else own

    return tuple(map(apart, outputs))


_USED: list[Strategy] = []
"""The strategies that operators have used, by the number that stands for each in a graph."""


def _number(strategy: Strategy) -> int:
    if strategy not in _USED:
        _USED.append(strategy)
    return _USED.index(strategy)
