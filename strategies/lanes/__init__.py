"""Compiled loops over batches of small matrices, a few matrices side by side in each vector."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["watchers"]

watchers: list[Callable[[float], None]] = []
"""Called with the floating-point operations of every launch, which torch's own tools do not see."""
