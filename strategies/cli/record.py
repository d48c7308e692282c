"""`backward-strategies record`: which calls a program makes, and how long they take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import strategies
from strategies.cli.common import file_option, notes, reports_errors
from strategies.cli.program import execute
from strategies.cli.script import AsCode, AsModule, Program, command_line, deferred
from strategies.integration.recording import Recording


@deferred
def record(
    program: Program,
    module: AsModule = False,
    code: AsCode = False,
    out: Annotated[Path | None, file_option("Where to keep it, for measure --workload.")] = None,
) -> None:
    """Run a program and say which calls it makes that strategies.linalg has, and how long they take.

    The table comes last, on stderr. Options come before the program's name.
    """
    command = command_line(program, is_module=module, is_code=code)
    with strategies.record() as recording:
        recording.program = tuple(command)
        try:
            execute(command)
        finally:  # also of a program that exits or fails
            recording.end()
            notes.print(str(recording), soft_wrap=True)
            if out is not None:
                _save(recording, out)


@reports_errors
def _save(recording: Recording, out: Path) -> None:
    recording.save(out)
    notes.print(f"kept in {out}", soft_wrap=True)
