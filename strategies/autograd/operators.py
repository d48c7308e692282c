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

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from strategies.autograd import plan_derivatives
from strategies.autograd.choice import choose, first_that_can
from strategies.autograd.cpp import used_plan
from strategies.autograd.derivatives import derivative, eager_mode
from strategies.autograd.fast_path import FastPath
from strategies.autograd.fast_path_node import FoundPlan
from strategies.autograd.registered import Registered
from strategies.autograd.rule import Tensors
from strategies.kernels.memory import is_addressable, materialized
from strategies.strategy import Strategy

_DERIVATIVES = (
    ("backward",),
    ("forward",),
    ("backward", "backward"),
    ("backward", "forward"),
    ("forward", "backward"),
)


Workspace = Callable[[int, int, int], tuple[int, int]]
"""How many entries of the matrices' dtype and integers are kept, of an m×n matrix and k columns."""

_PADDING = 512
"""Bytes of a workspace for its parts to begin at lines of the cache."""

OPERATORS: dict[str, Operator] = {}
"""By name."""


def _no_workspace(_: int, __: int, ___: int) -> tuple[int, int]:
    return 0, 0


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
        by_columns: positions of outputs that lie by columns; others lie by rows.
        takes_vectors: whether right-hand sides may be vectors.

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
        by_columns: Sequence[int] = (),
        takes_vectors: bool = False,
    ) -> None:
        self.takes_vectors = takes_vectors
        self.arity, self.differentiable, self.outputs = len(inputs), differentiable, outputs
        self.eagerly, self.shaped = compute, fake
        self._measured_as, self._any_rank = measured_as or name, any_rank
        self._name, self._by_columns = name, by_columns
        self._workspace: Workspace = _no_workspace
        parameters = *(f"Tensor {each}" for each in inputs), options, "str strategy"
        super().__init__(name, parameters, f"({', '.join(['Tensor'] * (outputs + 2))})")
        self.derivatives = {
            kinds: _Derivative(self, name, options, kinds) for kinds in _DERIVATIVES
        }
        OPERATORS[name] = self

    def use(
        self,
        fast_path: FastPath,
        usual: Sequence[Any] = (),
        *,
        taken: Sequence[int] = (),
        workspace: Workspace | None = None,
    ) -> None:
        """Let the fast path in C++ compute the operator and its gradient on the CPU.

        Args:
            fast_path: of the operation.
            usual: the options for which it does; an ellipsis stands for any, `float` for a tolerance or
                None: atol, if there are two, and rtol.
            taken: positions of its outputs that are those of the operator; by default all, in order.
            workspace: what is kept for the backward.
        """
        self._workspace = workspace or _no_workspace
        self.taken = list(taken or range(self.outputs))
        backward = self.derivatives["backward",]
        fast_path.serve(
            self._name,
            (self.arity, self.differentiable, self.takes_vectors),
            list(usual),
            self.taken,
            list(self._by_columns),
            self.kept_bytes,
            (self.compute, backward.compute, self._with_autograd, backward._with_autograd),
        )

    def __call__(self, *arguments: Any) -> Tensors:
        return tuple(self.call(*self.split(arguments))[: self.outputs])

    def kept_bytes(self, A: Tensor, B: Tensor | None = None) -> int:
        """How large the workspace is: on a CPU alone there is one."""
        if self._workspace is _no_workspace or A.device.type != "cpu":
            return 0
        *batch, m, n = A.shape
        k = 1 if B is None or B.ndim < A.ndim else B.shape[-1]
        entries, integers = self._workspace(m, n, k)
        return math.prod(batch) * (entries * A.itemsize + integers * 8) + _PADDING

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        """The outputs, an empty workspace, and the strategy: "auto" may be another in the backward."""
        inputs, (*options, name) = self.split(arguments)
        kept = inputs[0].new_zeros(self.kept_bytes(*inputs), dtype=torch.uint8)

        def run(strategy: Strategy) -> Tensors:
            outputs = self.laid_out(_apart(self.eagerly(*inputs, *options, strategy), inputs))
            return *outputs, kept, torch.tensor(_number(strategy))

        with eager_mode(grad=False):
            return first_that_can(self.candidates(name, inputs), run)

    def candidates(self, name: str, operands: Sequence[Tensor]) -> tuple[Strategy, ...]:
        """The strategies that a name stands for."""
        inputs = operands[: self.arity]
        return choose(name, self._measured_as, *inputs, any_rank=self._any_rank)

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        inputs, _ = self.split(arguments)
        kept = inputs[0].new_empty(self.kept_bytes(*inputs), dtype=torch.uint8)
        used = torch.zeros((), dtype=torch.int64, device="cpu")
        return *self.laid_out(self.shaped(*arguments[:-1])), kept, used

    def laid_out(self, outputs: Sequence[Tensor]) -> Tensors:
        """The outputs by rows or by columns, with strides that tell that of one column, too."""
        return tuple(
            each.mT.clone(memory_format=torch.contiguous_format).mT
            if i in self._by_columns and each.ndim > 1
            else each
            for i, each in enumerate(outputs)
        )

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
        *saved, used = outputs
        return self.derivatives[kind,].call(operands, (*saved, *options, used, list(needed)))

    def dims(self, outputs: Sequence[Tensor]) -> list[int | None]:
        # What is kept is of all matrices together, and so is the strategy.
        return [0 if i < self.outputs else None for i in range(len(outputs))]


class _Derivative(Registered):
    """The operator that is a derivative of an operation, or of a derivative.

    Its operands are those of what it is the derivative of and, backward, the cotangents of what that
    returns; forward, the tangents of those that are flagged. It returns, backward, gradients of those
    that are flagged; forward, the tangents of what the other returns. Flags of lower orders come first.
    All are also given the outputs of the operation and what that has kept. There may be many of each
    cotangent of the gradient, over a first dimension, where no level of differentiation is left.
    """

    def __init__(
        self, operation: Operator, name: str, options: str, kinds: tuple[str, ...]
    ) -> None:
        self._operation, self._kinds = operation, kinds
        self.arity, self.takes_vectors = operation.arity, operation.takes_vectors
        self.saves, self.takes_many = operation.outputs + 1, kinds == ("backward",)
        saved = [f"Tensor saved_{i}" for i in range(self.saves)]
        flags = [f"bool[] needed_{i}" for i in range(len(kinds))]
        super().__init__(
            "_".join((name, *kinds)),
            ("Tensor[] operands", *saved, options, "Tensor used", *flags),
            "Tensor[]",
        )

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        operands, options, used, flags = self._parts(arguments)
        found = used_plan(int(used))
        if found is not None and not self.takes_many:
            operation, saved = self._operation, arguments[1 : 1 + self.saves]
            gradient, rest = operation.derivatives["backward",], (*saved, *options, used)

            def pull(cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
                needed = [True] * self.arity
                return gradient.call([*operands[: self.arity], *cotangents], (*rest, needed))

            outputs = operation.taken, operation.differentiable
            with eager_mode(grad=False):
                of_kept = plan_derivatives.derivative(
                    self._kinds, found, operands, flags, outputs, saved, pull
                )
            if of_kept is not None:
                return self._apart(of_kept, operands)
        strategy = self._strategy(int(used), found, operands)
        if self._are_many(operands, options):
            size = len(operands[self.arity])
            inputs = [each.expand(size, *each.shape) for each in operands[: self.arity]]
            operands = [*inputs, *operands[self.arity :]]

        def outputs_of(*inputs: Tensor) -> Tensors:
            outputs = self._operation.eagerly(*inputs, *options, strategy)
            return tuple(outputs[: self._operation.differentiable])

        with eager_mode(grad=True):
            truncates = any(isinstance(each, float | Tensor) for each in options)
            derived = derivative(self._kinds, outputs_of, operands, flags, symmetric=not truncates)
            return self._apart(derived, operands)

    def _apart(self, derived: Sequence[Tensor], operands: Sequence[Tensor]) -> list[Tensor]:
        found = _apart(derived, operands)
        # Forward mode has tangents in the layout of what they are tangents of.
        return list(self._operation.laid_out(found) if self._kinds == ("forward",) else found)

    def _are_many(self, operands: Sequence[Tensor], options: Sequence[Any]) -> bool:
        """Whether there are more cotangents than outputs of these inputs."""
        if not self.takes_many:
            return False
        output, *_ = self._operation.shaped(*operands[: self.arity], *options)
        return operands[self.arity].ndim > output.ndim

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
        return list(self._operation.laid_out(outputs[: self._operation.differentiable]))

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
        *options, used = rest[self.saves : -len(self._kinds)]
        return operands, options, used, rest[-len(self._kinds) :]

    def _strategy(self, used: int, found: FoundPlan | None, operands: Sequence[Tensor]) -> Strategy:
        """That which computed the operation: by its number, or that of the plan."""
        if used >= 0:
            return _USED[used]
        # The plan may be forgotten.
        candidates = found.candidates if found else self._operation.candidates("auto", operands)
        return candidates[0]


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
