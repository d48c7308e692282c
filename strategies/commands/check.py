"""`backward-strategies check`: whether a strategy does what all strategies must."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from strategies import Strategy
from strategies.commands.common import console, tells_errors


@tells_errors
def check(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The strategy to check.")],
) -> None:
    """Check a strategy against the contract; modules of the current folder are found."""
    strategy = _load(target)
    from strategies.testing import check_strategy

    check_strategy(strategy)
    console.print(f"{target}: in order")


def _load(target: str) -> Strategy:
    module, colon, name = target.partition(":")
    if not colon:
        raise ValueError(f"{target!r} is not of the form module:Class")
    sys.path.insert(0, str(Path.cwd()))
    kind: Any = getattr(importlib.import_module(module), name, None)
    is_strategy = isinstance(kind, type) and issubclass(kind, Strategy)
    if not is_strategy:
        raise ValueError(f"{name} in {module} is not a subclass of strategies.Strategy")
    instance: Strategy = kind()
    return instance
