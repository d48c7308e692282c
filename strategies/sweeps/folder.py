"""The folder of a sweep, which is all that is known of it.

sweep.json                     what its results depend on: a folder is of one sweep
cells/CLASS/KEY.json           the result of a cell: a result file like any other
tries/CLASS/KEY.1, .2          tries that run, failed or vanished
refused/CLASS/NODE.json        nodes whose processor is not what the class says
jobs/NUMBER.json               what was submitted, and as what
results/CLASS-*.json           what was collected
slurm/                         logs of jobs
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from strategies.errors import UnusableFileError
from strategies.files.documents import Document, decoded, json_text
from strategies.files.writing import write_text
from strategies.measuring import Run, store
from strategies.sweeps import attempts
from strategies.sweeps.cells import SweepCell, arguments
from strategies.sweeps.config import Sweep


class State(StrEnum):
    """What is known of a cell."""

    MEASURED = "measured"
    FAILED = "failed"
    RUNNING = "running"
    MISSING = "missing"


@dataclass(frozen=True)
class Known:
    """A cell's state by the files alone: its result, its tries, and what is wrong with a damaged result."""

    state: State
    run: Run | None
    past: attempts.Past
    damage: str = ""

    @property
    def seconds(self) -> float:
        """How long the process of a measured cell took."""
        return float(self.run.arguments.get("seconds", 0.0)) if self.run else 0.0


class Refusal(msgspec.Struct, frozen=True):
    """A node that is not of a class, and what was asked of it."""

    node: str
    expected: str
    problem: str


class _Begun(Document, frozen=True, kw_only=True):
    format: str = "backward-strategies sweep"
    version: int = 1
    classes: dict[str, dict[str, Any]]


class Folder:
    """The files of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep, self.path = sweep, sweep.out

    def begin(self) -> None:
        """Makes the folder, or checks that it is of a sweep that measures the same."""
        path = self.path / "sweep.json"
        now = {name: arguments(self.sweep, name) for name in self.sweep.classes}
        before = _Begun.read(path).classes if path.exists() else {}
        for name in before.keys() & now.keys():
            for what, value in now[name].items():
                if (old := before[name].get(what)) != value:
                    problem = f"class {name} was begun with {what} {old}, not {value}"
                    raise UnusableFileError(path, f"{problem}: give another name or another out")
        if not before.keys() >= now.keys():
            _Begun(classes=before | now).save(path, parents=True)

    def result(self, cell: SweepCell) -> Path:
        return self.path / "cells" / cell.machines / f"{cell.key}.json"

    def tries(self, cell: SweepCell) -> Path:
        """What the names of its tries begin with."""
        return self.path / "tries" / cell.machines / cell.key

    def known(self, cell: SweepCell) -> Known:
        """What the files say of a cell."""
        run, damage, state = None, "", State.MISSING
        path, past = self.result(cell), attempts.past(self.tries(cell))
        if path.exists():
            try:
                (run,) = store.load(path, "grid")
            except UnusableFileError as error:
                damage = str(error)
        if run:
            state = State.MEASURED
        elif past.running:
            state = State.RUNNING
        elif past.is_hopeless:
            state = State.FAILED
        return Known(state, run, past, damage)

    def refuse(self, machines: str, node: str, problem: str) -> None:
        """Keeps that a node is not of a class, and why."""
        path = self._refused(machines) / f"{node}.json"
        write_text(path, json_text(Refusal(node, self._expected(machines), problem)), parents=True)

    def refusals(self, machines: str) -> Sequence[Refusal]:
        """The nodes that were refused for what the class still says."""
        paths = sorted(self._refused(machines).glob("*.json"))
        found = [decoded(path, Refusal) for path in paths]
        return [each for each in found if each.expected == self._expected(machines)]

    def _expected(self, machines: str) -> str:
        chosen = self.sweep.classes[machines]
        return f"cpu {chosen.cpu}, gpu {chosen.gpu}, {chosen.threads} threads"

    def _refused(self, machines: str) -> Path:
        return self.path / "refused" / machines
