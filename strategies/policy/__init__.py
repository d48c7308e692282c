"""Which strategy `strategy="auto"` stands for: looked up in a policy, built from measurements.

It is what `use` names, or the environment variable `BACKWARD_STRATEGIES_USE`, or the shipped policy, by
the time of forward and backward together. The user's calibration corrects that, unless it is of another
machine, or of numbers of threads that are further from the present one than the shipped policy is.
Operations that no policy knows, as `eig`, are PyTorch's own for small matrices
(`strategies.autograd.choice.is_left_to_torch`), but for those that have a fast path, as `lu_solve`.

The files (`strategies.policy.schema`) are read at the first "auto", not at import; one that cannot be used
is skipped with a warning. Of several machines that a policy knows the nearest answers
(`strategies.policy.nearest_machine`); of the stable strategies that it ranks the first installed is used.
"""

import contextlib
import functools
import os
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import torch

from strategies import registry
from strategies.errors import UnusableFileError
from strategies.policy import calibration, nearest_machine, validators
from strategies.policy.adaptation import adapt
from strategies.policy.calibration import Calibration, counted
from strategies.policy.schema import Part, Policy, PolicyKey
from strategies.strategy import Strategy

BASELINE = "native"
"""What measurements are compared with."""

SHIPPED = Path(__file__).with_name("forward_backward.json")

SHIPPED_NAME = "shipped"
"""What `use` and the environment variable take for the shipped policy, without a calibration."""

BY_BACKWARD = Path(__file__).with_name("backward.json")
"""A policy for `use` where one forward is followed by many backwards, as in a Jacobian.

It goes by the time of the backward alone. What is used otherwise goes by both together.
"""

_FALLBACK, _FALLBACK_OF_ANY_RANK = "triangular_solve", "qr_pinv"
"""For want of measurements; the second where an operation takes matrices of any rank."""

_ENVIRONMENT = "BACKWARD_STRATEGIES_USE"

Followed = tuple[Policy | Strategy, str]
"""What "auto" follows, and where that comes from, in words."""

override = ContextVar[Followed | None]("backward_strategies_override", default=None)
"""What `use` has said in this context."""


def candidates(*key: *PolicyKey, any_rank: bool) -> tuple[Strategy, ...]:
    """The strategies that "auto" tries one after the other, until one does not refuse the rank.

    It is asked about the operation whose measurements answer. Where that takes matrices of any rank, a
    strategy that refuses deficient rank has a successor.
    """
    *_, device = key
    return ranked(active(device)[0], key, any_rank=any_rank)


def ranked(
    choice: Policy | Strategy | str, key: PolicyKey, *, any_rank: bool
) -> tuple[Strategy, ...]:
    """`candidates` of a policy; or the one strategy that was chosen, or is named so."""
    if isinstance(choice, Policy):
        return _ranked(choice, key, any_rank)
    return (registry.get(choice) if isinstance(choice, str) else choice,)


def active(device: str = "cpu") -> Followed:
    """What holds here and now on a device."""
    held, threads = override.get(), torch.get_num_threads()
    return by_default(device, threads) if held is None else _here(held, device, threads)


@functools.lru_cache(maxsize=64)
def resolve_for_machine(
    policy: Policy, source: str, device: str, threads: int
) -> tuple[Policy, str]:
    """What a policy says here, and where that comes from: of several machines the nearest answers."""
    found, _, source = _nearest(policy, source, device.partition(":")[0], threads)
    return found, source


def refresh() -> None:
    """Read the files and the environment variable anew at the next "auto", as after a calibration."""
    ours = by_default, _from_environment, _shipped, _parts, resolve_for_machine
    for kept in (*ours, validators.here):
        kept.cache_clear()


def covers(operation: str) -> bool:
    """Whether what "auto" follows says anything of an operation."""
    choice, _ = active()
    return isinstance(choice, Strategy) or operation in choice.operations


@contextlib.contextmanager
def use(choice: str | Path | Strategy | Policy) -> Iterator[None]:
    """Let "auto" stand for a strategy, or follow a policy file, within a `with` block.

    It holds for the current thread or task, and for the backward of what was computed inside. A file is
    named by a path that ends in .json; "shipped" is the policy of this package.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        UnusableFileError: the file cannot be read, or is no policy of this version.
        TypeError: it is neither.

    Example:
        >>> import torch, strategies
        >>> with strategies.use("qr_pinv"):
        ...     strategies.linalg.pinv(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    token = override.set((_resolve(choice), f"strategies.use({choice!r})"))
    try:
        yield
    finally:
        override.reset(token)


@functools.lru_cache(maxsize=4096)
def _ranked(policy: Policy, key: PolicyKey, any_rank: bool) -> tuple[Strategy, ...]:
    def installed(deficient: bool) -> Iterator[Strategy]:
        names = policy.ranking(key, deficient=deficient)
        return (registry.get(name) for name in names if name in registry.available())

    fallback = registry.get(_FALLBACK_OF_ANY_RANK if any_rank else _FALLBACK)
    first = next(installed(False), fallback)
    if not any_rank or not first.requires_full_rank:
        return (first,)
    takes_any_rank = (each for each in installed(True) if not each.requires_full_rank)
    return first, next(takes_any_rank, fallback)


def _resolve(choice: object) -> Policy | Strategy:
    if isinstance(choice, Strategy | Policy):
        return choice
    if choice == SHIPPED_NAME:
        return Policy.read(SHIPPED)
    if isinstance(choice, Path) or (isinstance(choice, str) and choice.endswith(".json")):
        return Policy.read(Path(choice))
    if not isinstance(choice, str):
        raise TypeError(
            f"use takes a name, a policy file or a Strategy, not {type(choice).__name__}"
        )
    return registry.get(choice)


@functools.cache
def by_default(device: str, threads: int) -> Followed:
    """What holds outside of `use`."""
    if (chosen := _from_environment()) is not None:
        return _here(chosen, device, threads)

    def far_from_here(part: Part) -> float:
        return calibration.factor(part.threads, threads)

    kind = device.partition(":")[0]
    part = min(_parts(kind), key=far_from_here, default=None)
    policy, far, source = _nearest(*_shipped(), kind, threads)
    if part is None or (kind == "cpu" and far < far_from_here(part)):
        return policy, source
    of = f"the calibration {calibration.location()} ({counted(part.threads, 'thread')})"
    return adapt(policy, part), f"{of}, over {source}"


def _here(chosen: Followed, device: str, threads: int) -> Followed:
    choice, source = chosen
    if isinstance(choice, Policy) and choice.others:
        return resolve_for_machine(choice, source, device, threads)
    return chosen


@functools.cache
def _from_environment() -> Followed | None:
    choice = os.environ.get(_ENVIRONMENT)
    if not choice:
        return None
    source = f"{_ENVIRONMENT}={choice}"
    try:
        return _resolve(choice), source
    except (UnusableFileError, LookupError) as error:
        _warn(f'{source}: {error}; strategy="auto" ignores it')
        return None


@functools.cache
def _shipped() -> tuple[Policy, str]:
    try:
        return Policy.read(SHIPPED), "the shipped policy"
    except UnusableFileError as error:
        _warn(f'the shipped policy: {error}; strategy="auto" ignores it')
        return Policy(operations={}), "the fallback, for want of a policy"


@functools.cache
def _parts(device: str) -> list[Part]:
    """What the user's calibration has of this machine; a warning if it is of others only."""
    path = calibration.location()
    if not path.exists():
        return []
    try:
        found = Calibration.read(path)
        here = validators.here(device)
    except (UnusableFileError, RuntimeError) as error:
        _warn(f'{error}; strategy="auto" ignores the calibration')
        return []
    parts = found.of(here, device)
    if not parts and (differing := found.why_not(here, device)):
        _warn(
            f'{path} was calibrated elsewhere: here is {"; ".join(differing)}. strategy="auto" follows '
            "the shipped policy. `backward-strategies calibrate` measures this machine, "
            f"`backward-strategies policy clear` deletes the file, {_ENVIRONMENT}={SHIPPED_NAME} ignores it"
        )
    return parts


def _nearest(policy: Policy, source: str, device: str, threads: int) -> tuple[Policy, float, str]:
    """What a policy says here, how far that was measured from here, and where it comes from."""
    try:
        here = validators.here(device)
    except RuntimeError:  # no such device, of which a key may be all the same
        return policy, 0.0, source
    found, far, machine = nearest_machine.nearest(policy, here, device, threads)
    return found, far, f"{source} ({machine})" if policy.others and machine else source


def _warn(message: str) -> None:
    # Of no line: the user's is far up the stack, and one of this package says nothing to the user.
    warnings.warn_explicit(message, RuntimeWarning, "strategies", 0, __name__)
