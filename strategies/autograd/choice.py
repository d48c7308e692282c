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
from strategies.policy_file import Question

__all__ = [
    "StrategyChoice",
    "choose",
    "first_that_can",
    "question",
]

StrategyChoice = str | Strategy
_DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
Result = TypeVar("Result")


def choose(
    choice: StrategyChoice,
    operation: str,
    A: Tensor,
    *rhs: Tensor,
    any_rank: bool = False,
    square: bool = False,
) -> tuple[Strategy, ...]:
    """The strategies that a name, an instance or "auto" stands for, the preferred one first.

    What is no batch of matrices that LAPACK takes is left to PyTorch, whose errors say why.

    Args:
        choice: what the caller wrote.
        operation: whose measured cells answer.
        A: the matrices.
        rhs: the right-hand sides, where the operation takes them.
        any_rank: end with a strategy that takes any rank.
        square: the matrices have to be square.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        TypeError: it is none of these.
    """
    if not isinstance(choice, str | Strategy):
        raise TypeError(f"strategy= takes a name or a Strategy, not {type(choice).__name__}")
    if not _are_matrices(A, square) or (rhs and not _is_of_kind(A, *rhs)):
        return (registry.get(policy.BASELINE),)
    if isinstance(choice, Strategy):
        return (choice,)
    if choice != "auto":
        return (registry.get(choice),)
    if torch.compiler.is_compiling():
        return _measured_default_uncompiled(operation, A, rhs, any_rank)
    return _measured_default(operation, A, rhs, any_rank)


def _are_matrices(A: object, square: bool) -> bool:
    return (
        isinstance(A, Tensor)
        and A.dtype in _DTYPES
        and A.ndim > 1
        and not (square and A.shape[-2] != A.shape[-1])
        and not A.is_meta
    )


def _is_of_kind(A: Tensor, B: object) -> bool:
    return isinstance(B, Tensor) and B.dtype == A.dtype and B.device == A.device


def _measured_default(
    operation: str, A: Tensor, rhs: tuple[Tensor, ...], any_rank: bool
) -> tuple[Strategy, ...]:
    return policy.candidates(*question(operation, A, *rhs), any_rank=any_rank)


_measured_default_uncompiled = _disable_dynamo(_measured_default)


def question(operation: str, A: Tensor, *rhs: Tensor) -> Question:
    """A call as a policy is asked about it."""
    *batch, m, n = A.shape
    columns = rhs[0].shape[-1] if rhs and rhs[0].ndim >= A.ndim else 1
    count = math.prod(batch) if batch else 0
    return (operation, m, n, columns, count, str(A.dtype).removeprefix("torch."), A.device.type)


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
