"""Where this package keeps what takes long to compute."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """$BACKWARD_STRATEGIES_CACHE, or this project's folder in the user's cache.

    Raises:
        RuntimeError: neither is set and the user has no home directory.
    """
    if chosen := os.environ.get("BACKWARD_STRATEGIES_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backward-strategies"
