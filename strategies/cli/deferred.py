"""Commands that begin when typer has ended.

Typer catches exceptions and Ctrl-C of a command, sets `sys.excepthook`, and has its own frames on the
stack. None of that is what a program expects that a command runs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

__all__ = ["call", "deferred"]

P = ParamSpec("P")


class _Deferred(BaseException):
    """Takes a command past all handlers of typer, which catch what is an Exception or Ctrl-C."""

    def __init__(self, command: Callable[[], object]) -> None:
        self.command = command


def deferred(command: Callable[P, object]) -> Callable[P, None]:
    """Lets typer read the arguments of a command alone; `call` then begins it."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        raise _Deferred(functools.partial(command, *args, **kwargs))

    return wrapped


def call(app: typer.Typer, name: str) -> None:
    """Calls the command that `sys.argv` names, and a deferred one outside of typer."""
    hook = sys.excepthook
    try:
        app(prog_name=name)
    except _Deferred as found:
        command = found.command
    else:
        return
    sys.excepthook = hook
    command()
