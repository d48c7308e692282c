"""Operators of `torch.library`, which stand for the operations where tensors have no values.

`torch.compile`, `torch.export`, fake and meta tensors follow a call by shapes alone. What a strategy does
depends on values: it refuses a matrix, "auto" goes on to the next, a rank decides what is computed. So
an operation is one operator there, of which a compiler knows the shapes of the outputs and which
operators are its derivatives. Inside, at run time, it is the eager call.

Beside `inv` there are `inv_backward`, its gradient, `inv_forward`, its tangents, and those two of
`inv_backward`. Only tensors of known shapes are handed on from one to the next. So are the outputs and a
workspace, with which the fast path in C++ computes the gradient (`csrc/torch`). Where that
did not compute the operation, a derivative computes it again, and from there on what eager mode computes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.choice import choose, first_that_can
from strategies.autograd.copies import apart
from strategies.autograd.derivative_operators import KINDS, Derivative, number_of
from strategies.autograd.derivatives import eager_mode
from strategies.autograd.fast_path import FastPath, serve
from strategies.autograd.registered import Recorded, Registered
from strategies.autograd.rule import Tensors
from strategies.strategy import Strategy

Workspace = Callable[[int, int, int], tuple[int, int]]
"""How many entries of the matrices' dtype and integers are kept, of an m×n matrix and k columns."""

_PADDING = 512
"""Bytes of a workspace for its parts to begin at lines of the cache."""

_CLEARED = 2**16
"""Bytes of an empty workspace that are set to zero, so that equal small calls return equal bytes."""

EAGER: dict[str, Callable[..., Any]] = {}
"""What operators compute by: the public functions by name, before they are decorated."""


def _as_tuple(result: Tensor | Tensors) -> Tensors:
    return (result,) if isinstance(result, Tensor) else tuple(result)


class Operator(Registered):
    """An operation as an operator of `torch.library`, and its derivatives.

    Called with the inputs, the options and the name of a strategy, it gives the outputs.

    Args:
        name: of the operator.
        inputs: the names of the first parameters, tensors, which alone have gradients.
        options: the other parameters as in a schema, "bool left".
        compute: takes the inputs, the options and a strategy; the outputs, by eager calls. By default the
            function of that name in `EAGER`, whose parameters are named like these.
        fake: takes the inputs and the options; tensors of the outputs' shapes and dtypes. By default as
            PyTorch's function of that name has them.
        outputs: how many there are.
        differentiable: how many of these, from the first, carry gradients.
        measured_as: the operation by whose measurements "auto" goes.
        any_rank: "auto" ends with a strategy that takes any rank.
        by_columns: positions of outputs that lie by columns; others lie by rows.
        takes_vectors: whether right-hand sides may be vectors.
        constants: how many options, from the first, are tensors that fast paths take for inputs.
        fast_paths: which in C++ compute the operator and its gradient on the CPU, and the options for which
            each does. An ellipsis stands for any, `float` for a tolerance or None: atol, if there are two,
            and rtol; `Tensor` for one in a tensor, or None.
        taken: positions of their outputs that are those of the operator; by default all, in order.
        workspace: what they keep for the backward.

    Example:
        >>> torch.ops.backward_strategies.inv(torch.tensor([[4.0]]), "qr_pinv")[0]
        tensor([[0.2500]])
    """

    differentiable: int

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        options: str = "",
        *,
        compute: Callable[..., Tensors] | None = None,
        fake: Callable[..., Tensors] | None = None,
        outputs: int = 1,
        differentiable: int = 1,
        measured_as: str = "",
        any_rank: bool = False,
        by_columns: Sequence[int] = (),
        takes_vectors: bool = False,
        constants: int = 0,
        fast_paths: Iterable[tuple[FastPath, Sequence[Any]]] = (),
        taken: Sequence[int] = (),
        workspace: Workspace | None = None,
    ) -> None:
        self.takes_vectors, self.constants = takes_vectors, constants
        self.arity, self.differentiable, self.outputs = len(inputs), differentiable, outputs
        self.eagerly, self.shaped = compute or self._by_function, fake or self._as_in_torch
        self._parameters = *inputs, *(each.split()[-1] for each in options.split(", ") if each)
        self._measured_as, self._any_rank = measured_as or name, any_rank
        self._name, self._by_columns, self._workspace = name, by_columns, workspace
        self.taken = list(taken or range(outputs))
        parameters = *(f"Tensor {each}" for each in inputs), options, "str strategy"
        super().__init__(name, parameters, f"({', '.join(['Tensor'] * (outputs + 2))})")
        self.derivatives = {kinds: Derivative(self, name, options, kinds) for kinds in KINDS}
        if paths := [(each, list(usual)) for each, usual in fast_paths]:
            serve(
                name,
                paths,
                (self.arity, differentiable, takes_vectors, constants),
                self.taken,
                list(by_columns),
                self.kept_bytes,
                [self._registered(kinds) for kinds in ((), *KINDS)],
            )

    def _registered(self, kinds: tuple[str, ...]) -> tuple[tuple[str, ...], str, str, Registered]:
        """The operator, or that derivative, and the names of its derivatives, empty where there is none."""
        gradient, tangents = (
            f"backward_strategies::{'_'.join((self._name, *kinds, kind))}"
            if (*kinds, kind) in self.derivatives
            else ""
            for kind in ("backward", "forward")
        )
        return kinds, gradient, tangents, self.derivatives[kinds] if kinds else self

    def __call__(self, *arguments: Any) -> Tensors:
        return tuple(self.call(*self.split(arguments))[: self.outputs])

    def kept_bytes(self, A: Tensor, B: Tensor | None = None) -> int:
        """How large the workspace is: on a CPU alone there is one."""
        if self._workspace is None or A.device.type != "cpu":
            return 0
        *batch, m, n = A.shape
        k = 1 if B is None or B.ndim < A.ndim else B.shape[-1]
        entries, integers = self._workspace(m, n, k)
        return math.prod(batch) * (entries * A.itemsize + integers * 8) + _PADDING

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        """The outputs, an empty workspace, and the strategy: "auto" may be another in the backward."""
        inputs, (*options, name) = self.split(arguments)
        kept = inputs[0].new_empty(self.kept_bytes(*inputs), dtype=torch.uint8)
        kept[:_CLEARED].zero_()

        def run(strategy: Strategy) -> Tensors:
            outputs = apart(self.eagerly(*inputs, *options, strategy), inputs)
            return (
                *self.laid_out(outputs, itertools.count()),
                kept,
                torch.tensor(number_of(strategy)),
            )

        with eager_mode(grad=False):
            return first_that_can(self.candidates(name, inputs), run)

    def _by_function(self, *arguments: Any) -> Tensors:
        parameters = *self._parameters, "strategy"
        return _as_tuple(EAGER[self._name](**dict(zip(parameters, arguments, strict=True))))

    def _as_in_torch(self, *arguments: Any) -> Tensors:
        inputs, options = self.split(arguments)
        native = getattr(torch.linalg, self._name, None) or getattr(torch, self._name)
        named = dict(zip(self._parameters[self.arity :], options, strict=True))
        return tuple(each.new_empty(each.shape) for each in _as_tuple(native(*inputs, **named)))

    def candidates(self, name: str, operands: Sequence[Tensor]) -> tuple[Strategy, ...]:
        """The strategies that a name stands for."""
        inputs = operands[: self.arity]
        return choose(name, self._measured_as, *inputs, any_rank=self._any_rank)

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        inputs, _ = self.split(arguments)
        kept = inputs[0].new_empty(self.kept_bytes(*inputs), dtype=torch.uint8)
        used = torch.zeros((), dtype=torch.int64, device="cpu")
        return *self.laid_out(self.shaped(*arguments[:-1]), itertools.count()), kept, used

    def laid_out(self, tensors: Sequence[Tensor], places: Iterable[int]) -> Tensors:
        """As many tensors as there are places, in the layouts of the outputs there.

        Strides tell the layout of a single column, too.
        """
        return tuple(
            each.mT.clone(memory_format=torch.contiguous_format).mT
            if i in self._by_columns and each.ndim > 1
            else each
            for i, each in zip(places, tensors, strict=False)
        )

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arguments[: self.arity], arguments[self.arity :]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(*operands, *rest)

    def derive(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        *options, _ = at.rest
        *saved, used = at.outputs
        rest = *saved, *options, used, list(needed)
        return self.derivatives[kind,].call([*at.operands, *given], rest)

    def dims(self, outputs: Sequence[Tensor]) -> list[int | None]:
        # What is kept is of all matrices together, and so is the strategy.
        return [0 if i < self.outputs else None for i in range(len(outputs))]
