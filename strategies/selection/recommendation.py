"""Verdicts for people (rich tables) and for programs (JSON)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from strategies.measuring.measurement import Measurement, Objective
from strategies.selection import text
from strategies.selection.eligibility import Criteria
from strategies.selection.text import NOTHING, TOO_NOISY, doubtful, number, table
from strategies.selection.verdicts import NOISY, JudgedCell, Verdict, machines

FORMAT = "backward-strategies recommendation"
VERSION = 2
"""Raised when a field changes its meaning or goes away; new fields do not count."""

_COLOURS = {
    Verdict.BEST: "green",
    Verdict.TIE: "cyan",
    Verdict.SLOWER: "",
    Verdict.INELIGIBLE: "dim",
}


def overview(cells: list[JudgedCell], objective: Objective, title: str = "What to use") -> Table:
    """One line a case: the strategy to use, what cannot be told from it, and what it is worth.

    A dtype or device that all cases share stands in the title.
    """
    common = {name: {cell.case.columns()[name] for cell in cells} for name in ("dtype", "device")}
    varying = [name for name, values in common.items() if len(values) > 1]
    shared = [value for values in common.values() for value in values if len(values) == 1]
    objectives = _measured_objectives(cells)
    lines = table(
        ", ".join([title, *shared]),
        ["operation", "case", *varying, "use", "as good"],
        ["× native", *map(_heading, objectives), "error", "memory"],
    )
    for cell in cells:
        where = [cell.case.operation, cell.case.sizes]
        where += [cell.case.columns()[name] for name in varying]
        if cell.chosen is None:
            reasons = {each.reason for each in cell.judged}
            why = reasons.pop() if len(reasons) == 1 else "no strategy is eligible"
            lines.add_row(*where, NOTHING, why)
            continue
        name = cell.chosen.strategy
        lines.add_row(
            *where,
            doubtful(name, cell.is_too_noisy),
            _first(cell.ties),
            *_figures(cell, cell.chosen.measurement, objective, objectives),
        )
    chosen = ((cell, cell.chosen.strategy) for cell in cells if cell.chosen)
    lines.caption = _legend(chosen, objective)
    return lines


def _first(names: Sequence[str]) -> str:
    """As "qr_pinv +2": the ranking of a case has all."""
    return f"{names[0]} +{len(names) - 1}" if len(names) > 1 else "".join(names)


def ranking(cell: JudgedCell, objective: Objective) -> Table:
    """One line a strategy: everything the verdict on one case rests on."""
    objectives = _measured_objectives([cell])
    figures = ["× best", "interval", "× native", *map(_heading, objectives), "error", "memory"]
    lines = table(str(cell.case), ["strategy"], figures)
    lines.add_column("verdict")
    for each in cell.judged:
        arrow = " ←" if each.chosen and not cell.is_too_noisy else ""
        verdict = f"{each.verdict}: {each.reason}" if each.reason else str(each.verdict)
        lines.add_row(
            f"{each.strategy}{arrow}",
            number(each.ratio, ".2f"),
            NOTHING
            if math.isnan(each.ratio_low)
            else f"{each.ratio_low:.2f}-{each.ratio_high:.2f}",
            *_figures(cell, each.measurement, objective, objectives),
            TOO_NOISY if each.is_too_noisy else verdict,
            style=_COLOURS[each.verdict],
        )
    lines.caption = _legend(((cell, each.strategy) for each in cell.judged), objective)
    return lines


def in_words(cells: Sequence[JudgedCell]) -> list[str]:
    """What to use, where, and how sure that is: a line a strategy, and one for all cases."""
    chosen = [(cell, cell.chosen.strategy) for cell in cells if cell.chosen]
    sure = [(cell, name) for cell, name in chosen if not cell.is_too_noisy]
    by_strategy: dict[str, dict[str, list[str]]] = {}
    for cell, name in sure:
        where = by_strategy.setdefault(name, {})
        where.setdefault(cell.case.operation, []).append(cell.case.sizes)
    lines = []
    for name, where in sorted(by_strategy.items(), key=lambda found: -_count(found[1])):
        used_for = ", ".join(f"{each} ({_span(sizes)})" for each, sizes in where.items())
        lines.append(f"Use {name} in {_count(where)} of {len(cells)} cases: {used_for}.")
    ties, noisy = sum(bool(cell.ties) for cell, _ in sure), len(chosen) - len(sure)
    lines.append(
        f"{len(sure) - ties} of {len(cells)} cases are clear, in {ties} another strategy is as good, "
        f"and {noisy} are {TOO_NOISY}{': measure again while nothing else runs' if noisy else ''}."
    )
    return lines


def _count(where: Mapping[str, Sequence[str]]) -> int:
    return sum(map(len, where.values()))


def _span(sizes: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(sizes))
    return " to ".join(distinct if len(distinct) < 3 else (distinct[0], distinct[-1]))


def as_json(cells: Sequence[JudgedCell], criteria: Criteria) -> dict[str, Any]:
    """The recommendation as JSON values: criteria, provenance, and per case all the evidence."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "criteria": msgspec.to_builtins(criteria),
        "provenance": msgspec.to_builtins(machines(cells)),
        "cells": [_cell_json(cell, criteria.objective) for cell in cells],
    }


def _legend(shown: Iterable[tuple[JudgedCell, str]], objective: Objective) -> str | None:
    """What the mark of doubt says, if a ratio has it."""
    if not any(cell.over_native(name, objective).is_too_noisy for cell, name in shown):
        return None
    wide = f"the ends of the ratio's interval are a factor of {NOISY:.0f} apart"
    return f"{text.DOUBT} {TOO_NOISY}: {wide}, or the machine was busy"


def _heading(objective: Objective) -> str:
    """In two lines where it is long, since its column is as wide."""
    return text.OBJECTIVES[objective].replace(" + ", " +\n")


def _measured_objectives(cells: Iterable[JudgedCell]) -> list[Objective]:
    """The times that some strategy has in some of the cells."""
    measurements = [each.measurement for cell in cells for each in cell.judged]
    times = (Objective.FORWARD_BACKWARD, Objective.BACKWARD)
    return [time for time in times if any(each.cost(time) for each in measurements)]


def _figures(
    cell: JudgedCell, of: Measurement, objective: Objective, objectives: Iterable[Objective]
) -> list[str]:
    costs = (of.cost(each) for each in objectives)
    speedup = cell.over_native(of.strategy, objective)
    return [
        doubtful(number(speedup.ratio, ".3g"), speedup.is_too_noisy),
        *(text.seconds(cost.seconds if cost else None) for cost in costs),
        number(of.error, ".1e"),
        text.size(of.peak_bytes),
    ]


def _cell_json(cell: JudgedCell, objective: Objective) -> dict[str, Any]:
    strategies = []
    for each in cell.judged:
        fields = {name: value for name, value in vars(each).items() if name != "measurement"}
        *speedup, is_too_noisy = cell.over_native(each.strategy, objective)
        fields |= {"speedup_over_native": speedup, "speedup_too_noisy": is_too_noisy}
        strategies.append(fields | msgspec.structs.asdict(each.measurement))
    return {
        **cell.case.columns(),
        "machine": cell.machine.name,
        "started_at": cell.machine.started_at,
        "source": cell.source,
        "chosen": cell.chosen and cell.chosen.strategy,
        "too_noisy": cell.is_too_noisy,
        "contention": cell.cell.contention,
        "strategies": strategies,
    }
