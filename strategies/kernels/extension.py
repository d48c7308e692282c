"""The fast path in C++, `csrc/torch`: loaded where `warmup` has built it.

It is built against the PyTorch at hand, in half a minute; no call waits for that. Where it is not there,
Python does the same.
"""

import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from strategies.files.folders import cache_directory
from strategies.files.writing import require_writable, write
from strategies.kernels.cpu import library, openmp
from strategies.kernels.once import once

NAME = "fast_path"

_FILE = NAME + importlib.machinery.EXTENSION_SUFFIXES[-1]

_WHY = re.compile(r"error: |not found")
"""In the line of a failed build that says what is wrong; the last says that it failed."""

_DIGEST = hashlib.sha256().digest_size
"""Bytes at the end of the file, which the loader does not read."""

_BUILD = """
import os
import sys
from torch.utils.cpp_extension import load
name, source, folder = sys.argv[1:]
include = [os.path.dirname(source)]
load(name, source, extra_cflags=["-O2"], extra_include_paths=include, build_directory=folder)
"""

_log = logging.getLogger("strategies")

DEPENDENT_CACHES: list[Any] = []
"""Cached functions of the module, to be cleared once `warmup` has built it."""


@once
def load() -> ModuleType | None:
    """The module that was built for this version of torch and Python, if there is one.

    A warning says so where it could be built but is not.
    """
    if (file := _file()) is None:
        return None
    if not _is_whole(file):
        if shutil.which(os.environ.get("CXX", "c++")) is not None:
            _log.warning(
                "strategies: the fast path in C++ is not built, without which calls on small matrices take "
                "about twice the time: `backward-strategies warmup` builds it in half a minute"
            )
        return None
    try:
        module = _imported(file)
    except ImportError as error:
        _log.warning("strategies: the fast path in C++ cannot be loaded: %s", error)
        return None
    openmp.provide(module.set_team)
    return module


def is_missing() -> bool:
    """Whether `warmup` has something to build."""
    return (file := _file()) is not None and not _is_whole(file)


def warmup() -> bool:
    """Build the fast path in C++ if it is not there, which takes half a minute.

    It goes to the user's cache folder, or `$BACKWARD_STRATEGIES_CACHE`. Calls on small matrices, and above
    all of their backward, take half the time with it. Without a C++ compiler nothing happens but a warning.

    Returns:
        Whether there is one now that was not before.

    Raises:
        UnusableFileError: it cannot be written there.

    Example:
        >>> import strategies
        >>> is_built_now = strategies.warmup()
    """
    if (file := _file()) is None or (_is_whole(file) and load() is not None):
        return False
    # Folders are made once there is something to keep.
    require_writable(next(each for each in file.parents if each.exists()) / file.name)
    with tempfile.TemporaryDirectory() as scratch:
        if (problem := _build(scratch)) is not None:
            _log.warning(
                "strategies: the fast path stays in Python, as C++ cannot be built: %s", problem
            )
            return False
        built = (Path(scratch) / _FILE).read_bytes()
        write(file, built + hashlib.sha256(built).digest(), parents=True)
    for cached in (load, *DEPENDENT_CACHES):
        cached.cache_clear()
    return load() is not None


def _build(scratch: str) -> str | None:
    """Build the module in a folder; what is wrong if it cannot be built."""
    # Ninja comes with the package, and PATH has its folder only where the environment is activated.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])
    command = [sys.executable, "-c", _BUILD, NAME, str(_source()), scratch]
    with subprocess.Popen(
        command,
        env={**os.environ, "PATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, stderr = process.communicate()
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:  # compilers, too, which are processes of Ninja, one of this process
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    if not process.returncode:
        return None
    said = stderr.strip().splitlines() or [f"exit status {process.returncode}"]
    return next((line for line in said if _WHY.search(line)), said[-1])


def folder(cache: Path) -> Path:
    """Where in a cache builds are kept."""
    return cache / "fast_path"


def _file() -> Path | None:
    """Where the module of this version is, once it is built; None where it cannot be used."""
    if openmp.team() is None or not library.is_available() or (source := _source()) is None:
        return None
    try:
        return folder(cache_directory()) / _fingerprint(source) / _FILE
    except RuntimeError:  # the user has no folder at all
        return None


def _source() -> Path | None:
    return library.native_file(f"torch/{NAME}.cpp")


def _is_whole(file: Path) -> bool:
    """Whether a built file is there as it was written: one that is cut off would end the process."""
    try:
        content = file.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]


@functools.cache
def _fingerprint(source: Path) -> str:
    """Names all that the module depends on."""
    versions = torch.__version__, torch.version.git_version, sys.implementation.cache_tag
    digest = hashlib.sha256(repr((versions, sys.platform, platform.machine())).encode())
    for file in sorted(source.parent.rglob("*.[ch]pp")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None and spec.loader is not None  # noqa: PT018 - of a file with such a name
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
