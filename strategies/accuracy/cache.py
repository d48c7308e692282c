"""A disk cache of certified gradients, addressed by what they were computed from."""

import contextlib
import hashlib
import io
import os
import time
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.accuracy.certified import Certified, ScaledPair
from strategies.files.folders import cache_directory
from strategies.files.writing import DRAFT, write_bytes

# Part of every key: raise it when the formulas or the file's layout change.
_VERSION = 2
_ABANDONED_AFTER = 3600.0


def fingerprint(operation: str, rank: int | None, arrays: Sequence[NDArray[Any]]) -> str:
    """Hash everything a gradient depends on: names, shapes, dtypes and every bit of the data."""
    digest = hashlib.sha256(f"{_VERSION} {operation} {rank}".encode())
    for array in arrays:
        digest.update(f" {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Cache:
    """A folder of results, bounded in size, shared safely by any number of processes.

    A file is written in one step, so a reader sees all of it or nothing. Above the limit, in bytes, the
    files read least recently go first. A damaged file is a miss. A folder that cannot be written costs
    time, with a warning, and never a result.
    """

    def __init__(self, directory: Path | None = None, limit: int = 2**30) -> None:
        self.directory = cache_directory() if directory is None else directory
        self.limit = limit

    def load(self, key: str) -> Certified | None:
        """What was stored under the key."""
        path = self.directory / f"{key}.npz"
        try:
            with np.load(path, allow_pickle=False) as file:
                radius, bits, *arrays = (file[name] for name in file.files)
            os.utime(path)
            pairs = [ScaledPair(*arrays[i : i + 3]) for i in range(0, len(arrays), 3)]
            return Certified(tuple(pairs), float(radius), int(bits))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def store(self, key: str, result: Certified) -> None:
        """Keep a result, then drop the least recently used ones above the limit."""
        arrays = [array for part in result.parts for array in (part.high, part.low, part.exponent)]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.savez(content, result.radius, result.bits, *arrays)
            write_bytes(self.directory / f"{key}.npz", content.getvalue())
        except OSError as error:
            warnings.warn(f"gradients are not cached in {self.directory}: {error}", stacklevel=2)
        else:
            self._evict()

    def _evict(self) -> None:
        """Drop the oldest results above the limit, and what crashed writers left behind."""
        found: list[tuple[float, int, Path]] = []
        for path in self.directory.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        total = 0
        for modified, size, path in sorted(found, reverse=True):
            if path.suffix == ".npz":
                total += size
                is_due = total > self.limit
            else:
                is_due = path.suffix == DRAFT and modified < time.time() - _ABANDONED_AFTER
            if is_due:
                path.unlink(missing_ok=True)
