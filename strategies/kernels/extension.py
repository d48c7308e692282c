"""The fast path in C++, `csrc/torch`: loaded where `warmup` has built it.

It is built against the PyTorch at hand, in half a minute; no call waits for that. Where it is not there,
Python does the same.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch

from strategies.files import cache_directory, write_bytes
from strategies.kernels.cpu import library, threads

__all__ = ["NAME", "folder", "load", "warmup"]

NAME = "fast_path"

_FILE = NAME + importlib.machinery.EXTENSION_SUFFIXES[-1]

_BUILD = """
import sys
from torch.utils.cpp_extension import load
name, source, folder = sys.argv[1:]
load(name, source, extra_cflags=["-O2"], build_directory=folder)
"""

_log = logging.getLogger("strategies")


@functools.cache
def load() -> ModuleType | None:
    """The module that was built for this version of torch and Python, if there is one."""
    team = threads.team()
    place, source = _kept(), library.native_file(f"torch/{NAME}.cpp")
    if team is None or place is None or source is None or not library.is_available():
        return None
    if not (file := place / _fingerprint(source) / _FILE).is_file():
        return None
    try:
        module = _imported(file)
    except ImportError as error:
        _log.warning("strategies: %s cannot be loaded: %s", file, error)
        return None
    module.set_team(ctypes.cast(cast("Any", team), ctypes.c_void_p).value)
    # A forked process has none of its parent's threads, and OpenMP would wait for them.
    os.register_at_fork(after_in_child=functools.partial(module.set_team, 0))
    return module


def warmup() -> bool:
    """Build the fast path in C++ if it is not there, which takes half a minute.

    It goes to the user's cache folder, or `$BACKWARD_STRATEGIES_CACHE`. Calls on small matrices, and above
    all of their backward, take half the time with it. Without a C++ compiler nothing happens but a warning.

    Returns:
        Whether there is one now that was not before.
    """
    place, source = _kept(), library.native_file(f"torch/{NAME}.cpp")
    is_usable = threads.team() is not None and library.is_available() and load() is None
    if place is None or source is None or not is_usable:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", _BUILD, NAME, str(source), scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            _log.warning(
                "strategies: the fast path stays in Python, as C++ cannot be built: %s", reason
            )
            return False
        file = place / _fingerprint(source) / _FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, (Path(scratch) / _FILE).read_bytes())
    load.cache_clear()
    return load() is not None


def folder(cache: Path) -> Path:
    """Where in a cache builds are kept."""
    return cache / "fast_path"


def _kept() -> Path | None:
    """None where the user has no folder at all."""
    try:
        return folder(cache_directory())
    except RuntimeError:
        return None


@functools.cache
def _fingerprint(source: Path) -> str:
    """Names all that the module depends on."""
    versions = torch.__version__, torch.version.git_version, sys.implementation.cache_tag
    digest = hashlib.sha256(repr((versions, sys.platform, platform.machine())).encode())
    for file in sorted(source.parent.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
