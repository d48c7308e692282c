"""How a command line of this package says which program to run: as that of `python` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strategies.cli.common import reports_errors

__all__ = ["CONTEXT", "AsCode", "AsModule", "Program", "command_line"]

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
    """Returns what follows `python` in the command line that runs a program.

    Raises:
        SystemExit: there is no such file, or the program is two things at once.
    """
    if is_module and is_code:
        raise ValueError("a program is a module, by -m, or code, by -c, and not both")
    if is_module or is_code:
        return ["-m" if is_module else "-c", *program]
    if program[0] != "-" and not Path(program[0]).exists():
        raise ValueError(f"there is no file {program[0]}")
    return program
