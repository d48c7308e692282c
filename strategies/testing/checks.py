"""What a check is: a named function that raises where a strategy does wrong."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.interface import Strategy

__all__ = [
    "DTYPES",
    "Check",
    "NotApplicableError",
    "Violation",
    "close",
    "device",
    "numbered",
    "on",
    "require",
]

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)

_ROUNDOFFS = 2000
"""All matrices here have κ ≤ 10 and at most 8 rows: even κ² u with every constant is below this."""


class Violation(AssertionError):  # noqa: N818 - what the strategy did, not an error of this module
    """The strategy breaks the contract; the message says where and how."""


class NotApplicableError(Exception):
    """The check asks what this strategy does not claim to do."""


@dataclass(frozen=True)
class Check:
    """One thing that every strategy must do.

    Attributes:
        name: as it stands in the report.
        run: raises `Violation`, or anything else, where the strategy does not do it.
    """

    name: str
    run: Callable[[Strategy], None]


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
    require(
        found.shape == expected.shape,
        f"{what} has shape {tuple(found.shape)}, not {tuple(expected.shape)}",
    )
    require(found.dtype == expected.dtype, f"{what} has dtype {found.dtype}, not {expected.dtype}")
    if expected.numel() == 0:
        return
    scale = float(expected.abs().max()) or 1.0
    error = float((found - expected).abs().max()) / scale
    roundoff = torch.finfo(expected.dtype).eps / 2
    require(
        not math.isnan(error) and error <= _ROUNDOFFS * roundoff,
        f"{what} is off by {error:.1e}, where rounding explains {_ROUNDOFFS * roundoff:.0e}",
    )


def numbered(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Standard normal numbers that the seed determines, the global generator untouched."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator).to(device())
