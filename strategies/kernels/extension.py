"""The fast lane in C++, `lane.cpp`: built where there is a compiler, and loaded where it was built.

It is built against the torch at hand, by `warmup` or for a wheel; no call waits for that. Where it is
not there, Python does the same.
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

from strategies.cache_directory import cache_directory
from strategies.files import write_bytes
from strategies.kernels.cpu import threads
from strategies.kernels.cpu.compilation import SHIPPED
from strategies.kernels.cpu.kernel import IS_COMPILED

__all__ = ["NAME", "build", "folder", "load"]

NAME = "lane"

_SOURCE = Path(__file__).with_name("lane.cpp")

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
    if not IS_COMPILED or team is None:
        return None
    for place in filter(None, (SHIPPED, _kept())):
        if (file := place / _fingerprint() / _FILE).is_file():
            try:
                module = _imported(file)
            except ImportError as error:
                _log.warning("strategies: %s cannot be loaded: %s", file, error)
                continue
            module.set_team(ctypes.cast(cast("Any", team), ctypes.c_void_p).value)
            # A forked process has none of its parent's threads, and OpenMP would wait for them.
            os.register_at_fork(after_in_child=functools.partial(module.set_team, 0))
            return module
    return None


def build() -> bool:
    """Build what is not there, for later processes and for lanes that were not called yet.

    Returns:
        Whether it was built. Where it could not be, a warning says why.
    """
    place = _kept()
    if place is None or not IS_COMPILED or threads.team() is None or load() is not None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", _BUILD, NAME, str(_SOURCE), scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            _log.warning(
                "strategies: the fast lane stays in Python, as C++ cannot be built: %s", reason
            )
            return False
        file = place / _fingerprint() / _FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, (Path(scratch) / _FILE).read_bytes())
    load.cache_clear()
    return load() is not None


def folder(cache: Path) -> Path:
    """Where in a cache builds are kept."""
    return cache / "lanes"


def _kept() -> Path | None:
    """None where the user has no folder at all."""
    try:
        return folder(cache_directory())
    except RuntimeError:
        return None


_FILE = NAME + importlib.machinery.EXTENSION_SUFFIXES[-1]


@functools.cache
def _fingerprint() -> str:
    """Names all that the module depends on."""
    versions = torch.__version__, torch.version.git_version, sys.implementation.cache_tag
    digest = hashlib.sha256(repr((versions, sys.platform, platform.machine())).encode())
    digest.update(_SOURCE.read_bytes())
    return digest.hexdigest()[:32]


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
