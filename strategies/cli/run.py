"""`backward-strategies run` and `record`: programs that nobody edits.

Their command line says which program, as that of `python` does. They begin when typer has ended, which
catches exceptions and Ctrl-C of a command, sets `sys.excepthook`, and has its own frames on the stack. None
of that is what a program expects.
"""

import functools
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import strategies
from strategies.cli.common import P, file_option, notes, reports_errors, terminable, writable
from strategies.cli.program import execute
from strategies.integration import replacement
from strategies.integration.recording import Recording

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
        (command,) = found.args
    else:
        return
    sys.excepthook = hook
    command()


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


@deferred
def record(
    program: Program,
    module: AsModule = False,
    code: AsCode = False,
    out: Annotated[
        Path | None, file_option("Where to keep it, for measure --workload.", callback=writable)
    ] = None,
) -> None:
    """Run a program and say which calls it makes that strategies.linalg has, and how long they take.

    The table comes last, on stderr. Options come before the program's name.
    """
    command = command_line(program, is_module=module, is_code=code)
    with terminable(), strategies.record() as recording:
        recording.program = tuple(command)
        try:
            execute(command)
        finally:  # also of a program that exits, fails or is terminated
            recording.end()
            notes.print(str(recording), soft_wrap=True)
            if out is not None:
                _save(recording, out)


@reports_errors
def _save(recording: Recording, out: Path) -> None:
    recording.save(out)
    notes.print(f"kept in {out}", soft_wrap=True)
