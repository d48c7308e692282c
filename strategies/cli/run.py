"""`backward-strategies run`: a program that uses "auto" without an edit."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

import strategies
from strategies.cli.program import execute
from strategies.cli.script import AsCode, AsModule, Program, command_line, deferred
from strategies.integration import replacement


@deferred
def run(
    program: Program,
    module: AsModule = False,
    code: AsCode = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say which calls go to PyTorch, and why.")
    ] = False,
) -> None:
    """Run a program with torch's functions replaced by those of strategies.linalg.

    Its calls then use the measured defaults. Options come before the program's name.
    """
    command = command_line(program, is_module=module, is_code=code)
    if verbose:  # whatever the program does to other loggers
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("backward-strategies: %(message)s"))
        replacement.log.addHandler(handler)
        replacement.log.setLevel(logging.INFO)
        replacement.log.propagate = False
    # For as long as the process lives: threads and exit handlers of the program may outlast it.
    strategies.replace_torch()
    execute(command)
