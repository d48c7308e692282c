"""What a check is: a named function that raises where a strategy does wrong."""

import contextlib
import contextvars
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from strategies import operations, registry
from strategies.errors import LinAlgError, UnsupportedError, message_of
from strategies.formulas.amplification import unit_roundoff
from strategies.operations import Operation
from strategies.strategy import Strategy

Case = TypeVar("Case")

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)

_ROUNDOFFS = 2000
"""Times u, the unit roundoff. The condition numbers are 10 at most, 3 where there are more than 10
rows: even κ² u with every constant is below this."""


class Violation(AssertionError):  # noqa: N818 - what the strategy did, not an error of this module
    """The strategy breaks the contract; the message says where and how."""


class NotApplicableError(Exception):
    """The check asks what this strategy does not claim to do."""


class Check(NamedTuple):
    """One thing that every strategy must do: `run` raises where the strategy does not do it.

    What `run` returns is a note for the report.
    """

    name: str
    run: Callable[[Strategy], str | None]


Run = Callable[..., str | None]
Examine = Callable[[Strategy, Any], object]
Where = Callable[[Operation], bool]

_added: list[tuple[str, Run, Where | None]] = []


def check(run: Run, name: str = "") -> Run:
    """Adds a check of strategies that is named as the function is, or by another name."""
    _added.append((name or run.__name__.strip("_").replace("_", " "), run, None))
    return run


def check_each(
    cases: Callable[[Strategy], Iterable[Any]], name: str = ""
) -> Callable[[Examine], Examine]:
    """Adds a check of strategies that examines every case of a strategy."""

    def add(examine: Examine) -> Examine:
        @wraps(examine)
        def run(strategy: Strategy) -> None:
            each(cases(strategy), partial(examine, strategy))

        check(run, name)
        return examine

    return add


def check_operations(
    what: str, cases: Callable[[Operation], Iterable[Any]], where: Where = lambda _: True
) -> Callable[[Examine], Examine]:
    """Adds a check of every operation, or of some, that there are when checks are asked for."""

    def add(examine: Examine) -> Examine:
        def run(operation: Operation, strategy: Strategy) -> None:
            each(cases(operation), partial(examine, strategy))

        _added.append((what, run, where))
        return examine

    return add


def added() -> Iterator[Check]:
    """All checks, in the order in which they were added."""
    for name, run, where in _added:
        if where is None:
            yield Check(name, run)
        else:
            for operation in filter(where, records()):
                yield Check(f"{name} {operation.name}", partial(run, operation))


def records() -> list[Operation]:
    """Those of all operations."""
    return [operations.get(name) for name in operations.names()]


_device = contextvars.ContextVar("device", default="cpu")


def device() -> str:
    """Where the checks put what they make."""
    return _device.get()


@contextlib.contextmanager
def on(name: str) -> Iterator[None]:
    """Let the checks within put what they make on that device."""
    token = _device.set(name)
    try:
        yield
    finally:
        _device.reset(token)


def require(condition: bool, message: str) -> None:
    """Raise a `Violation` with that message unless the condition holds."""
    if not condition:
        raise Violation(message)


def each(cases: Iterable[Case], examine: Callable[[Case], object]) -> None:
    """Examine every case that the strategy takes; whatever goes wrong is told with its case.

    NotApplicableError if the strategy declines all of them.
    """
    declined, taken = "there is no such case", False
    for case in cases:
        try:
            examine(case)
        except NotApplicableError as reason:
            declined = str(reason)
        except UnsupportedError as refusal:
            declined = advice_in(refusal)
        except (Exception, SystemExit) as error:
            found = str(error) if isinstance(error, Violation) else message_of(error)
            raise Violation(f"{case}: {found}") from error
        else:
            taken = True
    if not taken:
        raise NotApplicableError(declined)


def advice_in(refusal: UnsupportedError) -> str:
    """What the refusal says: a strategy may decline a case if it names who takes it."""
    named_ones = re.findall("'([^']+)'", str(refusal))
    message = f"UnsupportedError must name, in quotes, a strategy that can; it says: {refusal}"
    require(any(name in registry.available() for name in named_ones), message)
    return str(refusal)


def require_named(refusal: Exception, strategy: Strategy) -> None:
    """Require that a refusal says who refuses: the strategy, or one that it delegates to."""
    is_named = any(f"'{name}'" in str(refusal) for name in (strategy.name, *registry.available()))
    require(is_named, f"refused, but not in the name of '{strategy.name}': {refusal}")


def require_refusal(strategy: Strategy, compute: Callable[[], object]) -> None:
    """Require that what has no result raises LinAlgError, in the name of who refuses."""
    try:
        compute()
    except LinAlgError as refusal:
        require_named(refusal, strategy)
    else:
        raise Violation("gave a result where LinAlgError is due")


def skip_native(strategy: Strategy, reason: str) -> None:
    """Excuse a strategy that leaves the operation to PyTorch from what PyTorch does not do."""
    if strategy.forward_is_differentiable:
        raise NotApplicableError(f"PyTorch's own operation, {reason}")


def close(
    found: Tensor, expected: Tensor, what: str, *, least_scale: float = 0.0, loosened: float = 1.0
) -> None:
    """Require equal shapes, dtypes and devices, and values equal to within rounding errors.

    Errors are relative to the largest number expected, or to `least_scale` where that is larger; of a
    problem that is not well-posed, `loosened` is a factor of what rounding explains.
    """
    for name, has, due in (
        ("shape", tuple(found.shape), tuple(expected.shape)),
        ("dtype", found.dtype, expected.dtype),
        ("device", found.device.type, expected.device.type),
    ):
        require(has == due, f"{what}: has {name} {has}, not {due}")
    if expected.numel() == 0:
        return
    scale = max(float(expected.abs().max()), least_scale) or 1.0
    error = float((found - expected).abs().max()) / scale
    limit = loosened * _ROUNDOFFS * unit_roundoff(expected.dtype)
    require(error <= limit, f"{what}: off by {error:.1e}, where rounding explains {limit:.0e}")


class Shaped(NamedTuple):
    """Which matrices a check draws, and what of them or for what, as "factor 6x4 float64".

    It may spoil one of them, or one entry.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    what: str = ""
    spoiled: tuple[int, ...] | None = None

    def __str__(self) -> str:
        where = "" if self.spoiled is None else f", spoiled at {self.spoiled}"
        return f"{self.what} {sized(self.shape, self.dtype)}{where}".strip()


def shaped(*choices: Iterable[Any]) -> Iterator[Shaped]:
    """One of every combination of shapes, dtypes and, where they are given, words."""
    return itertools.starmap(Shaped, itertools.product(*choices))


def is_number(tensor: Tensor) -> bool:
    """Whether a tensor holds floating-point numbers, real or complex."""
    return tensor.is_floating_point() or tensor.is_complex()


def sized(shape: Iterable[int], dtype: torch.dtype) -> str:
    """As "6x4 float64"."""
    return f"{'x'.join(map(str, shape))} {str(dtype).removeprefix('torch.')}"


def numbered(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Standard normal numbers that the seed determines, the global generator untouched."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator, device="cpu").to(device())
