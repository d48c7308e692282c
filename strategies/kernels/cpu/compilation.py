"""Machine code of the loops, compiled once for each dtype and kept in the user's cache folder.

The code lies in a folder whose name is a hash of all that it depends on: the sources of the CPU
kernels, the versions of the compiler and of Python, and the processor. After an edit or an upgrade
there is thus another folder, and the oldest folders go. A file begins with a checksum: a damaged one
counts as missing. Where no folder can be written, every process compiles for itself. A call that
waits for the compiler says so.

A wheel may carry such a folder for `BASELINE`, a processor that most can do the work of. Where there is
one for this version, it is looked in first, whatever the processor: equal calls then give equal bits
on all of them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import logging
import os
import pickle
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from strategies import allocation
from strategies.cache_directory import cache_directory
from strategies.files import write_bytes
from strategies.kernels.cpu.threads import ENTRY, Entry

__all__ = ["BASELINE", "SHIPPED", "SOURCES", "entry", "is_kept"]

BASELINE = (
    "x86-64-v3",
    "+64bit,+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,"
    "+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
)
"""Name and features, as LLVM has them: the third level of x86-64 in its psABI."""

SHIPPED = Path(__file__).parent / "compiled"

SOURCES = (
    Path(__file__).parent / "loops",
    *(Path(__file__).with_name(f"{name}.py") for name in ("blas", "task", "limits", "compilation")),
    Path(allocation.__file__),
)
"""Folders and files that machine code depends on."""

_CHECKSUM_BYTES = 32

_FOLDERS_KEPT = 4
"""Of different versions; each holds up to some 15 MB."""

_SECONDS_OF_SILENCE = 1.0
"""Before a call that waits says what for: to load code takes less."""

_log = logging.getLogger("strategies")


@functools.cache
def entry(loop: str, dtype: torch.dtype) -> Entry:
    """The compiled loop for a dtype.

    Args:
        loop: module and name in `strategies.kernels.cpu.loops`, with a dot between them; a hyphen and a
            number of rows follow if the loop is to be compiled for such matrices only.
        dtype: of the numbers in its matrices.
    """
    # Numba takes a second to import: who calls no kernel does not wait for it.
    import numba
    from numba.core.ccallback import CFunc

    module, _, rest = loop.partition(".")
    name, _, rows = rest.partition("-")
    function = getattr(importlib.import_module(f"strategies.kernels.cpu.loops.{module}"), name)
    if rows:
        function = _of_rows(function, int(rows))
    number = numba.from_dtype(torch.empty(0, device="cpu", dtype=dtype).numpy().dtype)
    pointer: Any = numba.types.CPointer
    signature = ((pointer(number),), numba.void)
    options = {"fastmath": {"contract"}, "error_model": "numpy"}
    compiled: Any = CFunc(function, signature, locals={}, options=options)
    compiled._cache = _Kept(_file(loop, dtype))
    with _announced(f"the kernel {loop} for {number}"):
        compiled.compile()
    result: Entry = ENTRY(compiled.address)
    result.code = compiled  # lives as long
    return result


def _of_rows(loop: Callable[[Any, int], None], n: int) -> Callable[[Any], None]:
    """The loop over matrices of n rows; the compiler takes for constant what a function encloses."""
    from strategies.kernels.cpu.loops.arguments import inlined

    any_rows = inlined(loop)

    def of_rows(task: Any) -> None:
        any_rows(task, n)

    return of_rows


def is_kept(loop: str, dtype: torch.dtype) -> bool:
    """Whether `entry` finds the code in a folder."""
    return _kept(_file(loop, dtype)) is not None


@contextlib.contextmanager
def _announced(what: str) -> Iterator[None]:
    """One line, by `logging` and thus on stderr, if the block takes long."""
    line = "strategies: compiling %s; strategies.warmup() does so for all, ahead of calls"
    notice = threading.Timer(_SECONDS_OF_SILENCE, _log.warning, (line, what))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def _file(loop: str, dtype: torch.dtype) -> str:
    return f"{loop}.{str(dtype).removeprefix('torch.')}"


def _kept(file: str) -> bytes | None:
    """The code in the first folder that has it."""
    contents = (_read(folder / file) for folder in (_shipped(), _folder()) if folder is not None)
    return next(filter(None, contents), None)


class _Kept:
    """What a `CFunc` of Numba asks for code that was compiled before: one file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def load_overload(self, _signature: Any, target: Any) -> Any:
        from numba.core.compiler import CompileResult

        target.refresh()
        content = _kept(self._file)
        parts = content and pickle.loads(content)  # noqa: S301 - the user's own folder, or ours
        return parts and CompileResult._rebuild(target, *parts)  # type: ignore[no-untyped-call]

    def save_overload(self, _signature: Any, result: Any) -> None:
        from numba.core.serialize import dumps

        if (folder := _folder()) is not None:
            _write(folder / self._file, dumps(result._reduce()))  # type: ignore[no-untyped-call]


def _read(path: Path) -> bytes | None:
    """What `_write` has written, None if there is nothing or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, code = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    return code if hashlib.sha256(code).digest() == checksum else None


def _write(path: Path, code: bytes) -> None:
    """Where that is possible."""
    with contextlib.suppress(OSError):
        if not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_oldest(path.parent.parent)
        write_bytes(path, hashlib.sha256(code).digest() + code)


def _remove_oldest(parent: Path) -> None:
    folders = sorted(parent.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[_FOLDERS_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _folder() -> Path | None:
    """Where the code of this version is kept; None where the user has no folder at all."""
    try:
        folder = cache_directory() / "kernels" / _fingerprint(_processor())
    except (OSError, RuntimeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(folder)  # the oldest folder is the one that was not used for longest
    return folder


@functools.cache
def _shipped() -> Path | None:
    """The folder that came with this package, if this version and this processor can use it."""
    from llvmlite import binding

    if not SHIPPED.is_dir():
        return None
    here, needed = binding.get_host_cpu_features(), BASELINE[1].replace("+", "").split(",")
    if not all(here.get(feature) for feature in needed):
        return None
    folder = SHIPPED / _fingerprint((_processor()[0], *BASELINE))
    return folder if folder.is_dir() else None


def _processor() -> tuple[str, str, str]:
    """Platform, name and features, as Numba compiles for them."""
    from numba.core.registry import cpu_target

    return cpu_target.target_context.codegen().magic_tuple()


def _fingerprint(processor: tuple[str, str, str]) -> str:
    """Names all that machine code depends on."""
    import llvmlite
    import numba

    versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
    digest = hashlib.sha256(repr((versions, processor)).encode())
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            digest.update(f"{path.name}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
