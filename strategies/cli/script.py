"""Commands that run a program: their command line says which, as that of `python` does.

They begin when typer has ended. Typer catches exceptions and Ctrl-C of a command, sets `sys.excepthook`,
and has its own frames on the stack. None of that is what a program expects.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from strategies.cli.common import P, reports_errors

CONTEXT = {"allow_interspersed_args": False}
"""Of a command that runs a program: what follows the program's name is the program's."""

Program = Annotated[
    list[str],
    typer.Argument(
        metavar="SCRIPT [ARGS]...", help="The program, or - for that on stdin, and its arguments."
    ),
]
AsModule = Annotated[bool, typer.Option("-m", help="The program is a module, as with python -m.")]
AsCode = Annotated[bool, typer.Option("-c", help="The program is code, as with python -c.")]


@reports_errors
def command_line(program: list[str], *, is_module: bool, is_code: bool) -> list[str]:
    """What follows `python` in the command line that runs a program."""
    if is_module and is_code:
        raise ValueError("a program is a module, by -m, or code, by -c, and not both")
    if is_module or is_code:
        return ["-m" if is_module else "-c", *program]
    if program[0] != "-" and not Path(program[0]).exists():
        raise ValueError(f"there is no file {program[0]}")
    return program


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
