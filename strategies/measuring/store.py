"""The files in which measurements are kept: one schema, one reader, one writer.

A file is JSON, grows by one cell at a time, and is replaced in one step, so that a reader sees the old file
or the new one. Times and errors have four significant digits, counts all of theirs.
"""

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from strategies.errors import UnusableFileError
from strategies.files.documents import Document, json_files
from strategies.files.writing import write_text
from strategies.measuring.case import Case
from strategies.measuring.machine import Machine, describe
from strategies.measuring.measurement import Cell, Measurement

Kind = Literal[
    "grid", "peers", "draw", "baseline", "work", "stability", "peer_stability", "calibration"
]

_MAY_DIFFER = {"started_at", "load", "noise"}
"""What is another one in every run, also where that resumes a file."""


class Run(msgspec.Struct, frozen=True):
    """What one run of a command measured, with the arguments of the command.

    Its kind is grid (what verdicts rest on), peers (beside other libraries), draw (random cases that
    judge a policy), baseline (of the speed gate), work (operations and bytes only), stability (hard cases,
    results and gradients judged, nothing timed), peer_stability (other libraries in such cases) or
    calibration (one that is not finished). The path is relative to the folder that was loaded.
    """

    kind: Kind
    machine: Machine
    arguments: dict[str, Any]
    cells: tuple[Cell, ...]
    path: str = ""


class _StoredCell(msgspec.Struct):
    case: str
    strategies: tuple[Measurement, ...]
    contention: float | None = None


class _StoredRun(Document, frozen=True, kw_only=True):
    format: str = "backward-strategies results"
    version: int = 1
    kind: Kind
    machine: Machine
    arguments: dict[str, Any]
    cells: tuple[_StoredCell, ...] = ()


def load(folder: Path, kind: Kind | None = None) -> list[Run]:
    """All runs of a kind in a folder and below it, or in a single file, oldest first; also .json.gz.

    Raises:
        UnusableFileError: there is none, or one of the files is damaged, foreign or newer. Nothing
            is skipped: a verdict on half of the evidence would look like any other.
    """
    if folder.is_file():
        runs = [_run(folder, folder.name)]
    elif folder.is_dir():
        found = json_files(folder, "**/*")
        runs = [_run(path, path.relative_to(folder).as_posix()) for path in found]
    else:
        raise UnusableFileError(folder, "is not a folder of results, nor a file of them")
    wanted = [run for run in runs if kind in (None, run.kind)]
    if not wanted:
        what = f"results of kind {kind}" if kind else "results"
        problem = f"holds no {what}; `backward-strategies measure` measures some"
        raise UnusableFileError(folder, problem)
    return sorted(wanted, key=lambda run: (run.machine.started_at, run.path))


def newest_cells(
    runs: Sequence[Run], counts: Callable[[Cell], bool] = lambda _: True
) -> list[tuple[Machine, Cell]]:
    """Of every machine and case, the last cell that counts, in the order of the cases."""
    newest = {
        (run.machine.name, cell.case): (run.machine, cell)
        for run in runs
        for cell in run.cells
        if counts(cell)
    }

    def order(found: tuple[Machine, Cell]) -> tuple[Any, ...]:
        machine, cell = found  # by its columns; what is not given comes first
        return *((value is not None, value) for value in cell.case.columns().values()), machine.name

    return sorted(newest.values(), key=order)


class Writer:
    """Keeps cells, in a result file if there is a path, in one step each; resumes the file of an equal run.

    UnusableFileError says that the file is damaged, foreign, newer, of other arguments or another machine,
    or cannot be written.
    """

    def __init__(
        self, path: Path | None, kind: Kind, arguments: dict[str, Any], machine: Machine
    ) -> None:
        self._run, self.path = Run(kind, machine, arguments, ()), path
        if path and path.exists():
            self._run = _resumed(path, self._run)
        elif path:  # what cannot be written is better known before anything is measured
            write(path, self._run)
        self.cells = list(self._run.cells)

    def append(self, cell: Cell) -> None:
        """Adds a cell and replaces the file, or raises UnusableFileError."""
        if self.path:
            write(self.path, msgspec.structs.replace(self._run, cells=(*self.cells, cell)))
        self.cells.append(cell)


def write(path: Path, run: Run) -> None:
    """Makes a file of a run, in place of what there is, or raises UnusableFileError."""
    head = _StoredRun(kind=run.kind, machine=run.machine, arguments=run.arguments)
    opened = msgspec.json.encode(head).decode().removesuffix("]}")
    cells = ",\n".join(map(_line, run.cells))
    write_text(path, f"{opened}\n{cells}\n]}}\n", parents=True)


def save(path: Path, kind: Kind, cells: Iterable[Cell]) -> None:
    """Makes a file of these cells, measured here and now, in place of what there is."""
    write(path, Run(kind, describe(), {}, tuple(cells)))


def _run(path: Path, name: str) -> Run:
    stored = _StoredRun.read(path)
    try:
        cells = tuple(Cell(Case.parse(c.case), c.strategies, c.contention) for c in stored.cells)
    except ValueError as error:
        raise UnusableFileError(path, f"is damaged: {error}") from error
    return Run(stored.kind, stored.machine, stored.arguments, cells, name)


@functools.lru_cache(maxsize=2**14)  # a file of thousands of cells is written anew with each
def _line(cell: Cell) -> str:
    """The cell with four significant digits in every number that is no count."""
    exact = msgspec.json.encode(cell.strategies)
    short = json.loads(exact, parse_float=lambda digits: float(f"{float(digits):.4g}"))
    kept = {"case": str(cell.case), "strategies": short}
    if cell.contention is not None:
        kept["contention"] = round(cell.contention, 2)
    return msgspec.json.encode(kept).decode()


def _resumed(path: Path, run: Run) -> Run:
    """What a file holds, if what determined it is what determines this run."""
    kept = _run(path, path.name)
    before, now = (
        {"kind": each.kind, **msgspec.structs.asdict(each.machine), **each.arguments}
        for each in (kept, run)
    )
    for name in ("kind", *sorted((before.keys() | now.keys()) - _MAY_DIFFER)):
        old, new = before.get(name), now.get(name)
        if old != new:
            how = f"was measured with {name} {old}, not {new}: move it, or give another file"
            raise UnusableFileError(path, how)
    return kept
