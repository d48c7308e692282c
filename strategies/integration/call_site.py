"""Where in a program a call is: the innermost frame that is neither PyTorch's nor this package's."""

from __future__ import annotations

import functools
from types import FrameType

__all__ = ["call_site", "is_own", "place"]

_OWN = __name__.partition(".")[0]


def is_own(frame: FrameType | None) -> bool:
    """Whether code of this package runs in a frame."""
    return _package(frame) == _OWN


def call_site(frame: FrameType | None) -> FrameType | None:
    """The frame of the program that a call in this frame comes from, if there is one."""
    while frame is not None and _package(frame) in (_OWN, "torch"):
        frame = frame.f_back
    return frame


def place(frame: FrameType | None) -> str:
    """File and line, as "train.py:12"; empty for no frame."""
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _package(frame: FrameType | None) -> str:
    return "" if frame is None else _first(frame.f_globals.get("__name__"))


@functools.lru_cache(maxsize=4096)
def _first(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""
