"""From what the caller wrote as `strategy=` to the strategies to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor
from torch._compile import _disable_dynamo

from strategies import policy, registry
from strategies.errors import LinAlgError
from strategies.interface import Strategy

__all__ = [
    "StrategyChoice",
    "choose",
    "first_that_can",
    "require_float_matrix",
    "require_same_kind",
]

StrategyChoice = str | Strategy
Result = TypeVar("Result")


def choose(
    choice: StrategyChoice,
    operation: str,
    A: Tensor,
    rhs: Tensor | None = None,
    *,
    any_rank: bool = False,
) -> tuple[Strategy, ...]:
    """The strategies that a name, an instance or "auto" stands for, the preferred one first.

    Args:
        choice: what the caller wrote.
        operation: whose measured cells answer.
        A: the matrices.
        rhs: the right-hand sides, where the operation takes them.
        any_rank: end with a strategy that takes any rank.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        TypeError: it is none of these.
    """
    if isinstance(choice, Strategy):
        return (choice,)
    if not isinstance(choice, str):
        raise TypeError(f"strategy= takes a name or a Strategy, not {type(choice).__name__}")
    if choice != "auto":
        return (registry.get(choice),)
    if torch.compiler.is_compiling():
        return _measured_default_uncompiled(operation, A, rhs, any_rank)
    return _measured_default(operation, A, rhs, any_rank)


def _measured_default(
    operation: str, A: Tensor, rhs: Tensor | None, any_rank: bool
) -> tuple[Strategy, ...]:
    if A.ndim < 2:
        return (registry.get(policy.BASELINE),)  # torch words the error
    *batch, m, n = A.shape
    return policy.candidates(
        operation,
        m,
        n,
        rhs=1 if rhs is None or rhs.ndim < A.ndim else rhs.shape[-1],
        batch=math.prod(batch) if batch else 0,
        dtype=str(A.dtype).removeprefix("torch."),
        device=A.device.type,
        any_rank=any_rank,
    )


_measured_default_uncompiled = _disable_dynamo(_measured_default)


def first_that_can(
    candidates: tuple[Strategy, ...], compute: Callable[[Strategy], Result]
) -> Result:
    """What the first strategy computes that does not refuse the input for its rank.

    Raises:
        torch.linalg.LinAlgError: the last one refuses, too.
    """
    *preferred, last = candidates
    for strategy in preferred:
        try:
            return compute(strategy)
        except LinAlgError:
            continue
    return compute(last)


def require_float_matrix(operation: str, matrix: Tensor, *, square: bool = False) -> None:
    """Raise what `torch.linalg` raises for a tensor that is not a batch of float matrices."""
    if matrix.ndim < 2:
        raise RuntimeError(
            f"linalg.{operation}: The input tensor A must have at least 2 dimensions, "
            f"not shape {tuple(matrix.shape)}."
        )
    if not (matrix.is_floating_point() or matrix.is_complex()):
        raise RuntimeError(
            f"linalg.{operation}: Expected a floating point or complex tensor as input. "
            f"Got {matrix.dtype}"
        )
    if square and matrix.shape[-1] != matrix.shape[-2]:
        raise RuntimeError(
            f"linalg.{operation}: A must be batches of square matrices, "
            f"but they are {matrix.shape[-2]} by {matrix.shape[-1]} matrices"
        )


def require_same_kind(operation: str, A: Tensor, B: Tensor) -> None:
    """Raise what `torch.linalg` raises for A and B of different dtypes or on different devices."""
    for what in ("dtype", "device"):
        kinds = getattr(A, what), getattr(B, what)
        if kinds[0] != kinds[1]:
            raise RuntimeError(
                f"linalg.{operation}: Expected A and B to have the same {what}, "
                f"but got {kinds[0]} and {kinds[1]}"
            )
