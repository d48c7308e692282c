"""The problems that checks share: drawn once, and solved once by what is known to be right.

A problem is an operation's inputs and cotangents with the results and gradients they should give,
from `triangular_solve` in double precision. The matrices are the identity with noise, their rows
shuffled: κ ≤ 3 at every size and shape, no determinant over- or underflows, and partial pivoting
has one choice only, which rounding does not change.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies import operations, registry
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import DTYPES, close, device, numbered, records, sized

Tensors = tuple[Tensor, ...]
Shape = tuple[int, ...]
Layout = Callable[[Tensor], Tensor]

SHAPES = {True: (5, 5), False: (6, 4)}
"""Of a problem of square matrices, and of any other."""

_NOISE = 0.25


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked of an operation, and the answers, none of which a strategy ever holds.

    The inputs are A, and B where it takes one; results are the differentiable outputs.
    """

    operation: Operation
    inputs: Tensors
    cotangents: Tensors
    results: Tensors
    gradients: Tensors

    def __str__(self) -> str:
        matrix, *others = self.inputs
        rhs = f" k={others[0].shape[-1]}" if others else ""
        memory = " expanded" if 0 in matrix.stride() else ""
        return f"{self.operation.name} {sized(matrix.shape, matrix.dtype)}{rhs}{memory}"

    @property
    def names(self) -> list[str]:
        """What is compared, in the order of results and gradients."""
        of_results = [f"result {i}" for i in range(len(self.results))]
        return [*of_results, *(f"the gradient of {letter}" for letter in "AB"[: len(self.inputs)])]

    def member(self, index: int) -> Problem:
        """The problem of one matrix of the batch alone."""
        return self._each(lambda tensor: tensor[index])

    def expanded(self, count: int) -> Problem:
        """The problem of a batch of that many, which are one matrix in memory: strides are zero."""
        return self._each(lambda tensor: tensor.expand(count, *tensor.shape))

    def _each(self, function: Layout) -> Problem:
        every = (self.inputs, self.cotangents, self.results, self.gradients)
        return Problem(self.operation, *(tuple(map(function, tensors)) for tensors in every))

    def solved_by(self, strategy: Strategy) -> tuple[Tensors, Tensors]:
        """Results and gradients by a strategy, which is given copies."""
        return solved(strategy, self.operation, self.inputs, self.cotangents)

    def require_answers(self, results: Tensors, gradients: Tensors, where: str = "") -> None:
        """Require that what a strategy found are the answers."""
        found, expected = (*results, *gradients), (*self.results, *self.gradients)
        for i, (name, value, due) in enumerate(zip(self.names, found, expected, strict=True)):
            # Results are of order 1, but for log|det|, which may happen to be small.
            least_scale = 1.0 if i < len(results) else 0.0
            what = f"{where}{name} against that of triangular_solve"
            close(value, due, what, least_scale=least_scale)


def solved(
    strategy: Strategy, operation: Operation, inputs: Tensors, cotangents: Tensors
) -> tuple[Tensors, Tensors]:
    """Results and gradients by a strategy, which is given copies of the tensors.

    A tensor that is a view stays the view it is: it is its base that is copied.
    """
    leaves, results = recorded(strategy, operation, inputs)
    given = tuple(copied(cotangent) for cotangent in cotangents)
    gradients = torch.autograd.grad(results, leaves, given, materialize_grads=True)
    return tuple(result.detach() for result in results), operation.defined(gradients)


def recorded(strategy: Strategy, operation: Operation, inputs: Tensors) -> tuple[Tensors, Tensors]:
    """Copies of the inputs as leaves of a graph, and the results at its other end."""
    leaves = tuple(copied(tensor).requires_grad_() for tensor in inputs)
    return leaves, operation.outputs(operation.function(*leaves, strategy=strategy))


def copied(tensor: Tensor) -> Tensor:
    """A detached copy with the same strides, the same lazy conjugation and the same offset."""
    tensor = tensor.detach()
    plain = tensor.conj() if tensor.is_conj() else tensor
    plain = torch._neg_view(plain) if plain.is_neg() else plain
    copy = deepcopy(plain)  # which alone would resolve what is lazy
    copy = torch._neg_view(copy) if tensor.is_neg() else copy
    return copy.conj() if tensor.is_conj() else copy


def matrices(shape: Shape, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Well-conditioned matrices of full rank, (..., m, n); those of a batch differ."""
    m, n = shape[-2:]
    noise = numbered(shape, dtype, seed) * (_NOISE / math.sqrt(max(m, n, 1)))
    rows = noise + torch.eye(m, n, dtype=dtype, device=device())
    order = numbered(shape[:-1], torch.float64, seed + 1).argsort(-1)
    return rows.gather(-2, order.unsqueeze(-1).expand(shape))


def problem(
    operation: str, shape: Shape, dtype: torch.dtype = torch.float64, k: int = 1, seed: int = 0
) -> Problem:
    """The problem of an operation at matrices of that shape, (..., m, n), and k right-hand sides."""
    return _problem(operation, shape, dtype, k, seed, device())


@functools.lru_cache(maxsize=4096)
def _problem(
    operation: str, shape: Shape, dtype: torch.dtype, k: int, seed: int, _: str
) -> Problem:
    record = operations.get(operation)
    A = record.domain.member(matrices(shape, dtype, 100 * seed))
    B = numbered((*shape[:-1], k), dtype, 100 * seed + 2)
    return of_inputs(record, (A, B)[: record.arity], 100 * seed + 3)


def problems(
    operation: Operation,
    square: Iterable[Shape],
    other: Iterable[Shape],
    dtypes: Iterable[torch.dtype] = DTYPES,
) -> Iterator[Problem]:
    """One of every shape and dtype; of square shapes where the operation takes no others."""
    for shape, dtype in itertools.product(square if operation.square else other, dtypes):
        yield problem(operation.name, shape, dtype, operation.arity)


def one_each(seed: int = 0, dtype: torch.dtype = torch.float64, batch: int = 0) -> list[Problem]:
    """One problem an operation; other seeds have other numbers in the same shapes."""
    lead = (batch,) if batch else ()
    return [problem(r.name, (*lead, *SHAPES[r.square]), dtype, r.arity, seed) for r in records()]


def of_inputs(record: Operation, inputs: Tensors, seed: int) -> Problem:
    """The problem of an operation at these inputs."""
    dtype = inputs[0].dtype
    outputs = record.outputs(record.function(*inputs, strategy="triangular_solve"))
    cotangents = tuple(numbered(tuple(f.shape), f.dtype, seed + i) for i, f in enumerate(outputs))
    wide = (tuple(map(doubled, tensors)) for tensors in (inputs, cotangents))
    results, gradients = solved(registry.get("triangular_solve"), record, *wide)
    narrow = (
        tuple(tensor.to(dtype if tensor.is_complex() else dtype.to_real()) for tensor in tensors)
        for tensors in (results, gradients)
    )
    return Problem(record, inputs, cotangents, *narrow)


def doubled(tensor: Tensor) -> Tensor:
    """The same numbers in double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
