"""`%load_ext strategies` in IPython: `replace_torch` until `%unload_ext strategies`."""

from __future__ import annotations

from strategies.integration.replacement import Replacement, replace_torch

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_loaded: list[Replacement] = []


def load_ipython_extension(_shell: object) -> None:
    """Called by `%load_ext strategies`."""
    _loaded.append(replace_torch())


def unload_ipython_extension(_shell: object) -> None:
    """Called by `%unload_ext strategies`."""
    while _loaded:
        _loaded.pop().undo()
