"""A Python program in this process, as `python script.py` or `python -m module` would run it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from strategies.commands.common import reports_errors

__all__ = ["CONTEXT", "AsModule", "Program", "execute"]

CONTEXT = {"allow_interspersed_args": False}
"""Of a command that runs a program: what follows the program's name is the program's."""

Program = Annotated[
    list[str], typer.Argument(metavar="SCRIPT [ARGS]...", help="The program, and its arguments.")
]
AsModule = Annotated[bool, typer.Option("-m", help="The program is a module, as with python -m.")]


def execute(program: Sequence[str], *, is_module: bool) -> None:
    """Runs a program to its end, or to the exception that ends it, which is the program's to tell."""
    name, *_ = program
    if not is_module:
        _require(Path(name))
    arguments, folders = sys.argv, sys.path[:]
    sys.argv = list(program)
    try:
        if is_module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(name).resolve().parent))
            runpy.run_path(name, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = arguments, folders


@reports_errors
def _require(path: Path) -> None:
    if not path.exists():
        raise ValueError(f"there is no file {path}")
