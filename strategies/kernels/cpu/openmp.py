"""The threads of the OpenMP runtime that torch has loaded."""

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_IF_LOADED = getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE


@functools.cache
def team() -> Any:
    """`GOMP_parallel` of that runtime, a function of ctypes; None where torch has another.

    After an operation of torch its threads wait actively for more work. They take this work at once; while
    they wait, they would keep a core from any other thread.
    """
    if os.getpid() != _PROCESS:
        return None  # a forked process has none of its parent's threads, and OpenMP would wait
    libraries = Path(torch.__file__).parent
    bundled = [*libraries.glob("lib/libgomp*"), *libraries.parent.glob("torch.libs/libgomp*")]
    for library in (*map(str, bundled), "libgomp.so.1"):
        try:
            parallel = ctypes.CDLL(library, mode=_IF_LOADED).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        parallel.restype = None
        return parallel
    return None


def provide(set_team: Callable[[int], object]) -> None:
    """Call a setter with the address of `team()`, 0 if there is none, and in forked processes with 0."""
    set_team(ctypes.cast(team(), ctypes.c_void_p).value or 0)
    os.register_at_fork(after_in_child=functools.partial(set_team, 0))


_PROCESS = os.getpid()
os.register_at_fork(after_in_child=team.cache_clear)
