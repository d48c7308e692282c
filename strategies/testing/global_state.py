"""The settings of a process that a library has no business changing."""

import contextlib
import gc
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _device

_torch: Any = torch


class _Setting(NamedTuple):
    read: Callable[[], Any]
    write: Callable[[Any], Any]


def _attribute(of: Any, name: str) -> _Setting:
    return _Setting(lambda: getattr(of, name), lambda value: setattr(of, name, value))


def _flushes_denormals() -> bool:
    return float(torch.tensor(5e-324, dtype=torch.float64, device="cpu") * 1.0) == 0.0


def _set_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]  # a list, whatever its stub says
    warnings.simplefilter("default", append=True)  # so that Python notices, and forgets what
    warnings.filters.pop()  # type: ignore[attr-defined]  # it knew of the filters


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


_SETTINGS: dict[str, _Setting] = {
    "torch's random generator": _Setting(torch.get_rng_state, torch.set_rng_state),
    "NumPy's random generator": _Setting(np.random.get_state, np.random.set_state),
    "Python's random generator": _Setting(random.getstate, random.setstate),
    "the default dtype": _Setting(torch.get_default_dtype, torch.set_default_dtype),
    # None where nobody chose one, which torch.get_default_device tells as it tells a chosen CPU.
    "the default device": _Setting(lambda: _device.CURRENT_DEVICE, torch.set_default_device),
    "whether gradients are recorded": _Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    "detection of anomalies": _Setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    "autocast on the CPU": _Setting(
        lambda: _torch.is_autocast_enabled("cpu"),
        lambda value: _torch.set_autocast_enabled("cpu", value),
    ),
    "the number of threads": _Setting(torch.get_num_threads, torch.set_num_threads),
    "deterministic algorithms": _Setting(
        torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode
    ),
    "float32 precision of CPU products": _attribute(
        _torch.backends.mkldnn.matmul, "fp32_precision"
    ),
    "float32 precision of CUDA products": _attribute(_torch.backends.cuda.matmul, "fp32_precision"),
    "flushing of denormal numbers": _Setting(_flushes_denormals, torch.set_flush_denormal),
    "functions of torch.linalg": _Setting(
        lambda: dict(vars(torch.linalg)), lambda value: vars(torch.linalg).update(value)
    ),
    "NumPy's handling of errors": _Setting(np.geterr, lambda value: np.seterr(**value)),
    "NumPy's print options": _Setting(
        np.get_printoptions, lambda value: np.set_printoptions(**value)
    ),
    "filters of warnings": _Setting(lambda: list(warnings.filters), _set_filters),
    "the recursion limit": _Setting(sys.getrecursionlimit, sys.setrecursionlimit),
    "the collection of garbage": _Setting(
        gc.isenabled, lambda value: gc.enable() if value else gc.disable()
    ),
    "environment variables": _Setting(lambda: dict(os.environ), _set_environment),
    "the working directory": _Setting(os.getcwd, os.chdir),
    "standard output": _attribute(sys, "stdout"),
    "standard error": _attribute(sys, "stderr"),
}


def snapshot() -> dict[str, Any]:
    """Every setting as it is now."""
    return {name: setting.read() for name, setting in _SETTINGS.items()}


def changed(before: dict[str, Any]) -> list[str]:
    """The names of the settings that are no longer as in the snapshot."""
    now = snapshot()
    return [name for name, value in before.items() if not _same(value, now[name])]


@contextlib.contextmanager
def preserved() -> Iterator[None]:
    """Sets back on leaving whatever was changed within; random generators are unlike any seed.

    A strategy that seeds the generator as the caller did would otherwise leave no trace. Within,
    torch uses one thread, as small matrices need.
    """
    before = snapshot()
    torch.manual_seed(0x5EED)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        for name in changed(before):
            _SETTINGS[name].write(before[name])


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return a is b or bool(np.all(a == b))
