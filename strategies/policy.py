"""Which strategy `strategy="auto"` stands for: looked up in a policy, built from measurements.

It is, in this order,

1. what `use` names, within its `with` block: a strategy or a policy file;
2. what the environment variable `BACKWARD_STRATEGIES_USE` names: a strategy or a policy file;
3. the shipped policy, by the time of forward and backward together;
4. `triangular_solve`, or `qr_pinv` where an operation takes matrices of any rank. Operations that no
   policy knows, as `lu_solve` and `qr`, are PyTorch's own for small matrices
   (`strategies.autograd.choice.choose_by_size`).

The second and the third are read at the first "auto", not at import. One that cannot be used is
skipped with a warning.

Of what a policy ranks, which is what is stable, the first that is installed is used.
`strategies.policy_file` describes the file.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from strategies import registry
from strategies.files import UnusableFileError
from strategies.interface import Strategy
from strategies.policy_file import Policy, Question, read

__all__ = [
    "BASELINE",
    "BY_BACKWARD",
    "SHIPPED",
    "answers",
    "candidates",
    "in_force",
    "ranked",
    "use",
]

BASELINE = "native"
"""What measurements are compared with."""

SHIPPED = Path(__file__).with_name("policy.json")

BY_BACKWARD = Path(__file__).with_name("policy_by_backward.json")
"""A policy for `use` where one forward is followed by many backwards, as in a Jacobian.

It goes by the time of the backward alone. What is used otherwise goes by both together.
"""

_FALLBACK, _FALLBACK_OF_ANY_RANK = "triangular_solve", "qr_pinv"

_ENVIRONMENT = "BACKWARD_STRATEGIES_USE"


def candidates(
    operation: str,
    m: int,
    n: int,
    rhs: int,
    batch: int,
    dtype: str,
    device: str,
    *,
    any_rank: bool,
) -> tuple[Strategy, ...]:
    """The strategies that "auto" tries one after the other, until one does not refuse the rank.

    What is asked is a `Question`, about the operation whose measurements answer. Where it takes
    matrices of any rank, a strategy that refuses deficient rank has a successor.
    """
    question = (operation, m, n, rhs, batch, dtype, device)
    return ranked(in_force()[0], question, any_rank=any_rank)


def ranked(
    choice: Policy | Strategy | str, question: Question, *, any_rank: bool
) -> tuple[Strategy, ...]:
    """`candidates` of a policy; or the one strategy that was chosen.

    Raises:
        StrategyNotFoundError: no strategy has that name.
    """
    if isinstance(choice, Policy):
        return _ranked(choice, question, any_rank)
    return (registry.get(choice) if isinstance(choice, str) else choice,)


def in_force() -> tuple[Policy | Strategy, str]:
    """What "auto" follows here and now, and where that comes from, in words."""
    return _override.get() or _default()


def answers(operation: str) -> bool:
    """Whether what "auto" follows says anything of an operation.

    Example:
        >>> with use("qr_pinv"):
        ...     answers("inv")
        True
    """
    choice, _ = in_force()
    return isinstance(choice, Strategy) or operation in choice.operations


@contextlib.contextmanager
def use(choice: str | Path | Strategy | Policy) -> Iterator[None]:
    """Let "auto" stand for a strategy, or follow a policy file, within a `with` block.

    It holds for the current thread or task, and for the backward of what was computed inside.

    Args:
        choice: a strategy or its name; a policy, or the path (ending in .json) of a file that
            `backward-strategies policy build` wrote.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        UnusableFileError: the file cannot be read, or is no policy of this version.

    Example:
        >>> import torch, strategies
        >>> with strategies.use("qr_pinv"):
        ...     strategies.linalg.pinv(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    token = _override.set((_resolve(choice), f"strategies.use({choice!r})"))
    try:
        yield
    finally:
        _override.reset(token)


@functools.lru_cache(maxsize=4096)
def _ranked(policy: Policy, question: Question, any_rank: bool) -> tuple[Strategy, ...]:
    def installed(deficient: bool) -> Iterator[Strategy]:
        names = policy.ranking(*question, deficient=deficient)
        return (registry.get(name) for name in names if name in registry.available())

    fallback = registry.get(_FALLBACK_OF_ANY_RANK if any_rank else _FALLBACK)
    first = next(installed(False), fallback)
    if not any_rank or not first.requires_full_rank:
        return (first,)
    takes_any_rank = (each for each in installed(True) if not each.requires_full_rank)
    return first, next(takes_any_rank, fallback)


def _resolve(choice: str | Path | Strategy | Policy) -> Policy | Strategy:
    if isinstance(choice, Strategy | Policy):
        return choice
    if isinstance(choice, Path) or choice.endswith(".json"):
        return read(Path(choice))
    return registry.get(choice)


@functools.cache
def _default() -> tuple[Policy | Strategy, str]:
    """What holds outside of `use`."""
    from_environment = f"{_ENVIRONMENT}={os.environ.get(_ENVIRONMENT)}"
    choices = (os.environ.get(_ENVIRONMENT), from_environment), (SHIPPED, "the shipped policy")
    for choice, source in choices:
        try:
            if choice:
                return _resolve(choice), source
        except (UnusableFileError, LookupError) as error:
            warnings.warn(
                f'{source}: {error}; strategy="auto" ignores it', RuntimeWarning, stacklevel=2
            )
    return Policy(operations={}), "the fallback, for want of a policy"


_override: contextvars.ContextVar[tuple[Policy | Strategy, str] | None] = contextvars.ContextVar(
    "backward_strategies_override", default=None
)
