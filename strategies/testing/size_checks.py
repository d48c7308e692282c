"""Every size, shape, number of right-hand sides and batch shape, in every dtype.

Kernels and special cases have thresholds, and each may be wrong on one side of its own only. So
the sizes are small and large, even and odd, square, nearly square and very long.
"""

import itertools
from collections.abc import Iterator

import torch

from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import DTYPES, check_operations
from strategies.testing.problems import Problem, problem, solved

_SQUARE = (1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 40, 64, 70, 130)
_TALL = ((2, 1), (3, 2), (5, 4), (9, 8), (10, 2), (34, 33), (40, 3), (70, 64), (70, 7), (130, 70))
_LONG = (300, 17)
_LARGE = 260
_THREADS = 2

_RIGHT_HAND_SIDES = (2, 3, 8, 70, 1)
"""One and another of them, in turn."""

_BATCHES = ((1,), (1, 1), (2,), (2, 1), (2, 3), (7,), (40,), (300,))
_IN_BATCHES = ((2, 2), (3, 3), (5, 5), (4, 2), (2, 4), (9, 3))


def _of_all_sizes(operation: Operation) -> Iterator[Problem]:
    shapes = [(n, n) for n in _SQUARE]
    if not operation.square:
        shapes += itertools.chain(*(((m, n), (n, m)) for m, n in (*_TALL, _LONG)))
    for i, shape in enumerate(shapes):
        for j, dtype in enumerate(DTYPES):
            other = _RIGHT_HAND_SIDES[(i + j) % len(_RIGHT_HAND_SIDES)]
            for k in sorted({1, other}) if operation.arity > 1 else (1,):
                yield problem(operation.name, shape, dtype, k)


def _large(operation: Operation) -> Iterator[Problem]:
    for dtype, k in ((torch.float32, _LARGE // 2), (torch.complex128, 2)):
        yield problem(operation.name, (_LARGE, _LARGE), dtype, k)
    if not operation.square:
        yield problem(operation.name, (2 * _LARGE, _LARGE), torch.float32, operation.arity)


def _in_batches(operation: Operation) -> Iterator[Problem]:
    ks = (1, 3) if operation.arity > 1 else (1,)
    for batch in _BATCHES:
        for m, n in _IN_BATCHES:
            for dtype, k in zip((torch.float64, torch.complex64), (*ks, *ks), strict=False):
                if m == n or not operation.square:
                    yield problem(operation.name, (*batch, m, n), dtype, k)
    for dtype in DTYPES:
        yield problem(operation.name, (2, 3, 4, 4), dtype, ks[-1])
        yield problem(operation.name, (2, 70, 70), dtype, ks[-1])
        of_one = (4, 4) if operation.square else (5, 3)
        yield problem(operation.name, of_one, dtype, ks[-1]).expanded(2)


@check_operations("batches of", _in_batches)
@check_operations("sizes of", _of_all_sizes)
def require_right(strategy: Strategy, asked: Problem) -> None:
    """Require the right results and gradients of a problem."""
    asked.require_answers(*asked.solved_by(strategy))


@check_operations("large", _large, lambda operation: operation.name == operation.policy_operation)
def _check_large(strategy: Strategy, asked: Problem) -> None:
    """Where strategies begin to share the work among threads."""
    torch.set_num_threads(_THREADS)
    require_right(strategy, asked)


def _of_columns(operation: Operation) -> Iterator[Problem]:
    shapes = ((4, 4), (2, 3, 3)) if operation.square else ((4, 4), (6, 3), (3, 6), (2, 6, 3))
    return itertools.starmap(problem, itertools.product([operation.name], shapes, DTYPES))


@check_operations("vectors in", _of_columns, lambda of: of.arity > 1 and of.takes_vectors)
def _check_vectors(strategy: Strategy, asked: Problem) -> None:
    """One right-hand side may be written without its dimension."""
    A, B = asked.inputs
    column = (asked.cotangents[0].squeeze(-1),)
    results, gradients = solved(strategy, asked.operation, (A, B.squeeze(-1)), column)
    columns = (gradients[0], gradients[1].unsqueeze(-1))
    asked.require_answers((results[0].unsqueeze(-1),), columns, "B a vector: ")
