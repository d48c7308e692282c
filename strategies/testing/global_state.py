"""The settings of a process that a library has no business changing."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

_backends: Any = torch.backends


def _float32_precision(matmul: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    name = "fp32_precision"
    return functools.partial(getattr, matmul, name), functools.partial(setattr, matmul, name)


# What it is called, how it is read, how it is set.
_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch's random generator": (torch.get_rng_state, torch.set_rng_state),
    "NumPy's random generator": (np.random.get_state, np.random.set_state),
    "Python's random generator": (random.getstate, random.setstate),
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "whether gradients are recorded": (torch.is_grad_enabled, torch.set_grad_enabled),
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "float32 precision of CPU products": _float32_precision(_backends.mkldnn.matmul),
    "float32 precision of CUDA products": _float32_precision(_backends.cuda.matmul),
}


def snapshot() -> dict[str, Any]:
    """Every setting as it is now."""
    return {name: read() for name, (read, _) in _SETTINGS.items()}


def changed(before: dict[str, Any]) -> list[str]:
    """The names of the settings that are no longer as in the snapshot."""
    now = snapshot()
    return [name for name, value in before.items() if not _same(value, now[name])]


@contextlib.contextmanager
def preserved() -> Iterator[None]:
    """Sets back on leaving whatever was changed within, and makes the generators unlike any seed.

    A strategy that seeds the generator as the caller did would otherwise leave no trace.
    """
    before = snapshot()
    torch.manual_seed(0x5EED)
    try:
        yield
    finally:
        for name in changed(before):
            _SETTINGS[name][1](before[name])


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return bool(np.all(a == b))
