"""Machine code of the loops, compiled once for each dtype and kept in the user's cache folder.

The code lies in a folder whose name is a hash of all that it depends on: the sources of the CPU
kernels, the versions of the compiler and of torch, and the processor. After an edit or an upgrade
there is thus another folder, and the oldest folders go. A file begins with a checksum: a damaged one
counts as missing. Where no folder can be written, every process compiles for itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from strategies.cache_directory import cache_directory
from strategies.files import write_bytes
from strategies.kernels.cpu.threads import ENTRY, Entry

__all__ = ["entry"]

_SOURCES = Path(__file__).parent
_CHECKSUM_BYTES = 32

_FOLDERS_KEPT = 4
"""Of different versions; each holds up to some 15 MB."""


@functools.cache
def entry(loop: str, dtype: torch.dtype) -> Entry:
    """The compiled loop for a dtype.

    Args:
        loop: module and name in `strategies.kernels.cpu.loops`, with a dot between them.
        dtype: of the numbers in its matrices.
    """
    # Numba takes a second to import: who calls no kernel does not wait for it.
    import numba
    from numba.core.ccallback import CFunc

    module, _, name = loop.partition(".")
    function = getattr(importlib.import_module(f"strategies.kernels.cpu.loops.{module}"), name)
    number = numba.from_dtype(torch.empty(0, device="cpu", dtype=dtype).numpy().dtype)
    pointer: Any = numba.types.CPointer
    signature = ((pointer(number),), numba.void)
    options = {"fastmath": {"contract"}, "error_model": "numpy"}
    compiled: Any = CFunc(function, signature, locals={}, options=options)
    folder = _folder()
    if folder is not None:
        compiled._cache = _Kept(folder / f"{loop}.{number}")
    compiled.compile()
    result: Entry = ENTRY(compiled.address)
    result.code = compiled  # lives as long
    return result


class _Kept:
    """What a `CFunc` of Numba asks for code that was compiled before: one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load_overload(self, _signature: Any, target: Any) -> Any:
        from numba.core.compiler import CompileResult

        target.refresh()
        content = _read(self._path)
        parts = content and pickle.loads(content)  # noqa: S301 - the user's own folder
        return parts and CompileResult._rebuild(target, *parts)  # type: ignore[no-untyped-call]

    def save_overload(self, _signature: Any, result: Any) -> None:
        from numba.core.serialize import dumps

        _write(self._path, dumps(result._reduce()))  # type: ignore[no-untyped-call]


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
        folder = cache_directory() / "kernels" / _fingerprint(_SOURCES)
    except (OSError, RuntimeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(folder)  # the oldest folder is the one that was not used for longest
    return folder


def _fingerprint(sources: Path) -> str:
    """Names all that machine code depends on."""
    import llvmlite
    import numba
    from numba.core.registry import cpu_target

    versions = numba.__version__, llvmlite.__version__, torch.__version__
    processor = cpu_target.target_context.codegen().magic_tuple()
    digest = hashlib.sha256(repr((versions, sys.version, processor)).encode())
    for path in sorted(sources.rglob("*.py")):
        digest.update(f"{path.relative_to(sources)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
