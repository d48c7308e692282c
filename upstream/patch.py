"""A patch: its cases, and its derivative in the place of PyTorch's own."""

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.cpp_extension import load

_ROOT = Path(__file__).parent

NAMES = tuple(sorted(path.parent.name for path in _ROOT.glob("*/derivative.h")))
"""The patches, each in a folder of its name."""


class Sample(NamedTuple):
    """A figure that is above a limit with PyTorch's derivative, and at most the limit with the patch."""

    label: str
    figure: Callable[[], float]
    limit: float


class Gradient(NamedTuple):
    """A function whose derivatives of both orders are checked at some inputs."""

    label: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]


class Timed(NamedTuple):
    """A backward that is timed: the function and its inputs, once, and then the gradient alone."""

    label: str
    function: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]


def cases(name: str) -> ModuleType:
    """The module of what a patch is checked by.

    It has `OPINFO`, names in PyTorch's list of operations; `samples()`, figures that the patch mends;
    `gradients()`, functions to be differentiated twice; `timed()`, backwards to be timed; and
    `stability(seed, count)`, of so many cases the pairs of stability ratios, PyTorch's and the patch's.
    """
    return importlib.import_module(f"upstream.{name}.cases")


@contextlib.contextmanager
def enabled(name: str) -> Iterator[None]:
    """Inside, gradients on the CPU are the patch's; the first time, it is compiled.

    Example:
        >>> with enabled("cholesky"):  # doctest: +SKIP
        ...     torch.linalg.cholesky(A).sum().backward()
    """
    operators = _operators(name)
    operators.enable()
    try:
        yield
    finally:
        operators.disable()


@functools.cache
def _operators(name: str) -> Any:
    if name not in NAMES:
        raise ValueError(f"there is no patch {name!r}: there is {', '.join(NAMES)}")
    library, folder = f"upstream_{name}", _ROOT.parent / "build" / "upstream" / name
    folder.mkdir(parents=True, exist_ok=True)
    load(
        library,
        str(_ROOT / name / "extension.cpp"),
        extra_cflags=["-O1"],
        build_directory=str(folder),
        is_python_module=False,
    )
    return getattr(torch.ops, library)
