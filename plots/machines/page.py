"""What the results of several machines say, as Markdown."""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from plots.machines import crossed
from plots.marked import folded, table, table_without_empty
from strategies.measuring import Case, Objective, Run
from strategies.policy import BASELINE
from strategies.selection.between_machines import (
    Against,
    Places,
    against_native,
    by_machine,
    carried,
    drawn,
    flips,
    interval,
    is_native_stable,
)
from strategies.selection.eligibility import Criteria
from strategies.selection.markdown import importance
from strategies.selection.regret import quantile
from strategies.selection.text import NOTHING, number, times
from strategies.selection.verdicts import JudgedCell, judge, machines

OBJECTIVE = Objective.FORWARD_BACKWARD

MARKS = {Against.FASTER: "▲", Against.SAME: "=", Against.SLOWER: "▼", Against.UNDECIDED: "?"}
"""What stands for a verdict in a table of cases."""


def parts(runs: Sequence[Run]) -> dict[str, str]:
    """The generated parts of the page by name; ValueError if no case was timed."""
    criteria = Criteria(OBJECTIVE)
    places = by_machine(judge(runs, criteria))
    elsewhere = carried(runs, places, criteria)
    return {
        "top": f"{_top(places)} {crossed.top(places, elsewhere)}",
        "machines": _machines(places),
        "summary": _summary(places),
        "overview": _overview(places),
        "cases": _cases(places),
        "losses": _losses(places),
        "flips": crossed.flips_between(places),
        "carried": crossed.carried_over(elsewhere),
        "drawn": crossed.of_drawn(drawn(runs, places, criteria)),
    }


def _top(places: Places) -> str:
    counts, _ = _verdicts(_every(places))
    cases = {cell.case for cell in _every(places)}
    where = "one machine" if len(places) == 1 else f"{len(places)} machines"
    return (
        f"{len(cases)} cases on {where}: in {counts[Against.FASTER]} of {counts.total()} the strategy to "
        f"use is faster than PyTorch's own way, in {counts[Against.SLOWER]} it is slower, in "
        f"{counts[Against.SAME]} the same, and {counts[Against.UNDECIDED]} are undecided."
    )


def _every(places: Places) -> list[JudgedCell]:
    return [cell for cells in places.values() for cell in cells.values()]


def _verdicts(cells: Iterable[JudgedCell]) -> tuple[Counter[Against], list[float]]:
    """How often the strategy to use is faster than native and so on, and all speeds, the lowest first."""
    found = [against_native(cell, OBJECTIVE) for cell in cells]
    counts = Counter(verdict for verdict, _ in found)
    return counts, sorted(ratio for _, (ratio, *_) in found if ratio > 0)


def _machines(places: Places) -> str:
    head = (
        *("machine", "processor", "GPU", "instructions", "torch", "BLAS", "measured", "threads"),
        *("load", "noise", "cases"),
    )
    lines = []
    for name, cells in places.items():
        known = machines(cells.values())
        newest = known[-1]
        days = sorted({each.started_at[:10] for each in known})
        words = newest.cpu, newest.gpu, newest.instruction_set, newest.torch, newest.blas
        lines.append(
            (
                f"`{name}`",
                *(word or NOTHING for word in words),
                " to ".join(dict.fromkeys((days[0], days[-1]))),
                str(newest.threads),
                *(_worst([each.load for each in known]), _worst([each.noise for each in known])),
                str(len(cells)),
            )
        )
    return table_without_empty(head, lines, 7)


def _worst(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(max(known, default=None), ".2f")


def _summary(places: Places) -> str:
    """How often the strategy to use is faster than native, a line a machine."""
    head = ("machine", *Against, "× native, median", "5th to 95th percentile")
    lines = []
    for name, cells in places.items():
        counts, speeds = _verdicts(cells.values())
        median = times(statistics.median(speeds)) if speeds else NOTHING
        span = " to ".join(_speed(quantile(speeds, share)) for share in (0.05, 0.95))
        lines.append((f"`{name}`", *(str(counts[each]) for each in Against), median, span))
    return table_without_empty(head, lines, 1)


def _overview(places: Places) -> str:
    """A line an operation and dtype, a column a machine."""
    lines = []
    for (operation, dtype), cases in _groups(places).items():
        own = ([cells[case] for case in cases if case in cells] for cells in places.values())
        lines.append((f"`{operation}`", dtype, *map(_counts, own)))
    return table(("operation", "dtype", *_columns(places)), lines, 2)


def _columns(places: Places) -> list[str]:
    return [f"`{name}`" for name in places]


def _counts(cells: Sequence[JudgedCell]) -> str:
    if not cells:
        return NOTHING
    counts, speeds = _verdicts(cells)
    mean = times(statistics.geometric_mean(speeds)) if speeds else NOTHING
    marks = (f"{counts[verdict]}{mark}" for verdict, mark in MARKS.items() if counts[verdict])
    return f"{mean} · {' '.join(marks)}"


def _cases(places: Places) -> str:
    """Folded tables of every operation, one a dtype: a line a case, a column a machine."""
    flipped = {
        flip.case
        for one, other in itertools.combinations(places.values(), 2)
        for flip in flips(one, other)
    }
    by_operation: dict[str, list[str]] = defaultdict(list)
    for (operation, dtype), cases in _groups(places).items():
        title = f"**{dtype}, {len(cases)} cases**"
        by_operation[operation] += [title, _table(cases, places, flipped)]
    return "\n\n".join(folded(name, "\n\n".join(tables)) for name, tables in by_operation.items())


def _table(cases: Iterable[Case], places: Places, flipped: set[Case]) -> str:
    lines = []
    for case in cases:
        device = "" if case.device == "cpu" else f" {case.device}"
        flag = " ⇄" if case in flipped else ""
        entries = (_entry(cells.get(case)) for cells in places.values())
        lines.append((f"{case.sizes}{device}{flag}", *entries))
    return table(("matrix", *_columns(places)), lines, 1 + len(places))


def _entry(cell: JudgedCell | None) -> str:
    if cell is None:
        return NOTHING
    verdict, (ratio, *_) = against_native(cell, OBJECTIVE)
    if cell.chosen is None:
        return str(verdict)
    name = f"`{cell.chosen.strategy}`"
    if cell.chosen.strategy == BASELINE:
        return name
    return f"{name} {_speed(ratio)} {MARKS[verdict]}" if verdict in MARKS else f"{name}, {verdict}"


def _losses(places: Places) -> str:
    """Every case in which the strategy to use is slower than native, of stable and unstable native."""
    every = _every(places)
    slower = [cell for cell in every if against_native(cell, OBJECTIVE)[0] is Against.SLOWER]
    stable = [cell for cell in slower if is_native_stable(cell)]
    unstable = [cell for cell in slower if not is_native_stable(cell)]
    usable = sum(map(is_native_stable, every))
    said = f"{len(stable)} of {usable} cases" if usable else "in no case is native stable"
    where = "**Slower, where native is unstable** in [hard cases](stability.md)"
    blocks = [
        f"**Slower, where native is stable**: {said}.",
        _share(places, stable) if usable else "",
        _listed(stable) if stable else "",
        f"{where}: {len(unstable)} cases.",
        _share(places, unstable),
        folded(f"All {len(unstable)} of them", _listed(unstable)) if unstable else "",
    ]
    return "\n\n".join(filter(None, blocks))


def _share(places: Places, slower: Sequence[JudgedCell]) -> str:
    """By operation and machine how many cases are slower, of all, and the slowest of them."""
    lines = []
    for operation in dict.fromkeys(operation for operation, _ in _groups(places)):
        entries = []
        for name, cells in places.items():
            every = sum(case.operation == operation for case in cells)
            own = [c for c in slower if (c.machine.name, c.case.operation) == (name, operation)]
            worst = min((against_native(cell, OBJECTIVE)[1][0] for cell in own), default=math.nan)
            words = f"{len(own)} of {every}" if every else NOTHING
            entries.append(f"{words}, down to {_speed(worst)}" if own else words)
        lines.append((f"`{operation}`", *entries))
    return table(("operation", *_columns(places)), lines, 1)


def _listed(cells: Iterable[JudgedCell]) -> str:
    head = ("case", "machine", "use", "speed over native")
    lines = []
    for cell in sorted(cells, key=lambda cell: against_native(cell, OBJECTIVE)[1][0]):
        use = f"`{cell.chosen.strategy}`" if cell.chosen else NOTHING
        speed = interval(against_native(cell, OBJECTIVE)[1])
        lines.append((str(cell.case), f"`{cell.machine.name}`", use, speed))
    return table(head, lines, 3)


def _groups(places: Places) -> dict[tuple[str, str], list[Case]]:
    """All cases by operation and dtype."""
    found: dict[tuple[str, str], list[Case]] = {}
    for case in sorted({cell.case: None for cell in _every(places)}, key=importance):
        found.setdefault((case.operation, case.dtype_name), []).append(case)
    return dict(sorted(found.items()))


def _speed(ratio: float) -> str:
    return f"{ratio:.2f}×" if ratio < 9.95 else times(ratio)
