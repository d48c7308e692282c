"""What a check is: a named function that raises where a strategy does wrong."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.amplification import unit_roundoff
from strategies.interface import Strategy

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)

_ROUNDOFFS = 2000
"""Times u, the unit roundoff. The matrices have at most 8 rows and a condition number κ ≤ 10: even
κ² u with every constant is below this."""


class Violation(AssertionError):  # noqa: N818 - what the strategy did, not an error of this module
    """The strategy breaks the contract; the message says where and how."""


class NotApplicableError(Exception):
    """The check asks what this strategy does not claim to do."""


class Check(NamedTuple):
    """One thing that every strategy must do: `run` raises where the strategy does not do it."""

    name: str
    run: Callable[[Strategy], None]


def named(*functions: Callable[[Strategy], None]) -> tuple[Check, ...]:
    """Checks that are called as these functions are."""
    return tuple(Check(run.__name__.strip("_").replace("_", " "), run) for run in functions)


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


def close(found: Tensor, expected: Tensor, what: str) -> None:
    """Require equal shapes, and values equal to within rounding errors of a well-posed problem."""
    for name, has, due in (
        ("shape", tuple(found.shape), tuple(expected.shape)),
        ("dtype", found.dtype, expected.dtype),
    ):
        require(has == due, f"{what} has {name} {has}, not {due}")
    if expected.numel() == 0:
        return
    scale = float(expected.abs().max()) or 1.0
    error = float((found - expected).abs().max()) / scale
    limit = _ROUNDOFFS * unit_roundoff(expected.dtype)
    require(error <= limit, f"{what} is off by {error:.1e}, where rounding explains {limit:.0e}")


def is_number(tensor: Tensor) -> bool:
    """Whether a tensor holds floating-point numbers, real or complex."""
    return tensor.is_floating_point() or tensor.is_complex()


def numbered(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Standard normal numbers that the seed determines, the global generator untouched."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator).to(device())
