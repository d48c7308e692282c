"""Verdicts as a Markdown table, cases by strategies, that a page keeps between two markers."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from strategies import operations, registry
from strategies.errors import UnusableFileError
from strategies.files.writing import write_text
from strategies.measuring import Case, Cell, Machine, Objective, Status
from strategies.measuring.store import Run, newest_cells
from strategies.policy import BASELINE
from strategies.selection.text import NOTHING, doubtful, provenance, seconds, times
from strategies.selection.verdicts import Judged, JudgedCell, Verdict, simplicity

_BEGIN = re.compile(r"<!-- recommendation: (.*?) *-->")
_END = "<!-- recommendation: end -->"

_OUR_BEST = "best strategy"

_Line = tuple[Machine, Case, Mapping[str, str]]
"""What a table says of a case, by strategies or libraries."""


def update(path: Path, judged: list[JudgedCell], runs: list[Run], objective: Objective) -> None:
    """Replaces what a page holds between two markers by tables of the verdicts.

    The first marker is `<!-- recommendation: CASES -->`, where CASES is "all" or cases separated by
    commas, as "pinv 4096x32, solve 512x512 float32"; in the second, CASES is "end". What the runs
    say of other libraries follows the verdicts.
    """
    try:
        page = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableFileError(path, f"cannot be read ({error})") from error
    markers = list(_BEGIN.finditer(page))
    if len(markers) != 2 or markers[1].group() != _END:
        raise UnusableFileError(path, f"lacks lines <!-- recommendation: all --> and {_END}")
    begin, end = markers
    wanted = None if begin[1] == "all" else [Case.parse(text) for text in begin[1].split(",")]
    verdicts = [
        (cell.machine, cell.case, {j.strategy: _entry(cell, j, objective) for j in cell.judged})
        for cell in judged
    ]
    peers = newest_cells([run for run in runs if run.kind == "peers"])
    libraries = [(machine, cell.case, _libraries(cell)) for machine, cell in peers]
    tables: list[str] = []
    for lines in (verdicts, libraries):
        tables += _tables([line for line in lines if wanted is None or line[1] in wanted])
    text = "\n\n".join(tables)
    write_text(path, f"{page[: begin.end()]}\n{text}\n{page[end.start() :]}")


def _tables(lines: Sequence[_Line]) -> Iterator[str]:
    """A table for every dtype, device and machine: a line a case, a column a strategy or library."""

    def kind(line: _Line) -> tuple[str, str, str]:
        machine, case, _ = line
        return machine.name, case.dtype_name, case.device

    for machine, dtype, device in sorted(set(map(kind, lines))):
        shown = [line for line in lines if kind(line) == (machine, dtype, device)]
        names = {name for _, _, entries in shown for name in entries}
        first = BASELINE, _OUR_BEST
        columns = sorted(names, key=lambda name: (name not in first, simplicity(name)))
        rows = [["operation", "matrix", *columns], ["---", "---", *["--:"] * len(columns)]]
        for _, case, entries in sorted(shown, key=lambda line: importance(line[1])):
            words = (entries.get(name, NOTHING) for name in columns)
            rows.append([f"`{case.operation}`", case.sizes, *words])
        heading = f"**{dtype}, {device}** · " + "; ".join(provenance(line[0] for line in shown))
        yield "\n".join([heading, "", *(f"| {' | '.join(row)} |" for row in rows)])


def importance(case: Case) -> tuple[float, ...]:
    """Sorts cases by operation, single matrices before batches, large before small."""
    operation = operations.names().index(case.operation)
    return operation, case.batch > 0, case.rank is not None, -case.work, case.rhs


def _entry(cell: JudgedCell, judged: Judged, objective: Objective) -> str:
    """Native's time, or another strategy's speed-up over it, or its time where native did not run.

    Bold is the strategy to use, ≈ a tie with it, ? what is too noisy to tell, parentheses say ineligible.
    """
    if judged.measurement.status is Status.NOT_APPLICABLE:
        return NOTHING
    if judged.measurement.status is not Status.OK:
        return str(judged.measurement.status)
    speedup = cell.cell.speedup(BASELINE, judged.strategy, objective)[0]
    cost = judged.measurement.cost(objective)
    is_time = judged.strategy == BASELINE or not speedup > 0
    text = seconds(cost.seconds if cost else None) if is_time else times(speedup)
    if judged.chosen and not cell.is_too_noisy:
        return f"**{text}**"
    if judged.is_too_noisy or (cell.is_busy and not is_time):
        return doubtful(text, True)
    return {Verdict.TIE: f"≈ {text}", Verdict.INELIGIBLE: f"({text})"}.get(judged.verdict, text)


def _libraries(cell: Cell) -> dict[str, str]:
    """A line by libraries: native's time, and how much faster our best strategy and the others are.

    Of each both objectives: forward and backward together / the backward alone.
    """
    ours = registry.available()
    entries: dict[str, list[str]] = {}
    for objective in (Objective.FORWARD_BACKWARD, Objective.BACKWARD):
        cost = cell.costs(objective).get(BASELINE)
        names = [each.strategy for each in cell if each.strategy != BASELINE]
        speeds = {name: cell.speedup(BASELINE, name, objective)[0] for name in names}
        of_ours = (speed for name, speed in speeds.items() if name in ours and speed > 0)
        best = max(of_ours, default=math.nan)
        texts = {BASELINE: seconds(cost.seconds if cost else None), _OUR_BEST: times(best)}
        texts |= {name: times(speeds[name]) for name in names if name not in ours}
        for name, text in texts.items():
            entries.setdefault(name, []).append(text)
    return {
        name: NOTHING if set(texts) == {NOTHING} else " / ".join(texts)
        for name, texts in entries.items()
    }
