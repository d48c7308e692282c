"""`backward-strategies run`: a program that uses "auto" without an edit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Annotated

import typer

import strategies
from strategies import replacing
from strategies.commands.script import AsModule, Program, execute


def run(
    program: Program,
    module: AsModule = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say which calls go to PyTorch, and why.")
    ] = False,
) -> None:
    """Run a program with torch's functions replaced by those of strategies.linalg.

    Its calls then use the measured defaults. Options come before the program's name.
    """
    telling = _telling() if verbose else contextlib.nullcontext()
    with telling, strategies.replace_torch():
        execute(program, is_module=module)


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """Writes what `replacing` logs to stderr, whatever the program does to other loggers."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("backward-strategies: %(message)s"))
    log = replacing.log
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
