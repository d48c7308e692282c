"""A disk cache of certified gradients, addressed by what they were computed from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.accuracy.certified import Certified, ScaledPair

# Part of every key: raise it when the formulas or the file's layout change.
_VERSION = 1
_ABANDONED_AFTER = 3600.0


def default_directory() -> Path:
    """Return $BACKWARD_STRATEGIES_CACHE, or this project's folder in the user's cache."""
    chosen = os.environ.get("BACKWARD_STRATEGIES_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backward-strategies"


def fingerprint(operation: str, rank: int | None, arrays: Sequence[NDArray[Any]]) -> str:
    """Hash everything a gradient depends on: names, shapes, dtypes and every bit of the data."""
    digest = hashlib.sha256(f"{_VERSION} {operation} {rank}".encode())
    for array in arrays:
        digest.update(f" {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Cache:
    """A folder of results, bounded in size, shared safely by any number of processes.

    A file is written under a temporary name and renamed, so a reader sees all of it or nothing.
    When the limit is exceeded the files read least recently go first. A damaged file is
    a miss. A folder that cannot be written costs time, with a warning, and never a result.

    Args:
        directory: where; `default_directory` by default. Created when first written.
        limit: the total size in bytes above which old results are dropped.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Cache(Path(folder)).load("0" * 64) is None
        True
    """

    def __init__(self, directory: Path | None = None, limit: int = 2**30) -> None:
        self.directory = default_directory() if directory is None else directory
        self.limit = limit

    def load(self, key: str) -> Certified | None:
        """Return what was stored under the key, or None."""
        path = self._path(key)
        try:
            with np.load(path, allow_pickle=False) as file:
                result = _unpacked(file)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return result

    def store(self, key: str, result: Certified) -> None:
        """Keep a result, then drop the least recently used ones above the limit."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(suffix=".tmp", dir=self.directory)
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, **_packed(result))
            Path(name).replace(self._path(key))
        except OSError as error:
            warnings.warn(f"gradients are not cached in {self.directory}: {error}", stacklevel=2)
            return
        self._evict()

    def clear(self) -> int:
        """Remove every result and return how many there were."""
        removed = 0
        for path in self._files("*.npz"):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                removed += 1
        return removed

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.npz"

    def _files(self, pattern: str) -> list[Path]:
        return list(self.directory.glob(pattern))

    def _evict(self) -> None:
        """Drop the oldest results above the limit, and what crashed writers left behind."""
        found: list[tuple[float, int, Path]] = []
        for path in self._files("*.npz"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in found) - self.limit
        for _, size, path in sorted(found):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
        for path in self._files("*.tmp"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
                    path.unlink()


def clear() -> int:
    """Remove every result from the default cache and return how many there were."""
    return Cache().clear()


def _packed(result: Certified) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "radius": np.array(result.radius),
        "bits": np.array(result.bits),
    }
    for i, part in enumerate(result.parts):
        arrays[f"high{i}"], arrays[f"low{i}"] = part.high, part.low
        arrays[f"exponent{i}"], arrays[f"shape{i}"] = part.exponent, np.array(part.shape)
    return arrays


def _unpacked(file: np.lib.npyio.NpzFile) -> Certified:
    count = sum(name.startswith("high") for name in file.files)
    parts = tuple(
        ScaledPair(
            file[f"high{i}"],
            file[f"low{i}"],
            file[f"exponent{i}"],
            tuple(int(size) for size in file[f"shape{i}"]),
        )
        for i in range(count)
    )
    return Certified(parts, float(file["radius"]), int(file["bits"]))
