"""Numbers, provenance and tables as text, the same in commands, figures and pages."""

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from strategies.measuring import Machine, Objective
from strategies.measuring.noise import NOISY, VERY_NOISY
from strategies.policy.calibration import counted

NOTHING = "–"
"""Stands for what was not measured."""

DOUBT = "?"
"""Stands before what is too noisy to tell."""

TOO_NOISY = "too noisy to tell"

OBJECTIVES = {each: each.replace("_", " + ") for each in Objective}


def seconds(value: float | None) -> str:
    """A duration with three digits and its unit, as "1.23 ms"."""
    return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))


def size(value: float | None) -> str:
    """An amount of memory with three digits and its unit, as "2.5 MB"."""
    return _scaled(value, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def times(value: float) -> str:
    """A ratio with two digits, or all before the point: "1.5×", "146×"."""
    return f"{number(value, '.2g' if value < 99.5 else '.0f')}{'' if math.isnan(value) else '×'}"


def doubtful(text: str, is_too_noisy: bool) -> str:
    """A ratio with a mark if it is too noisy to tell, as "? 2.8×"."""
    return f"{DOUBT} {text}" if is_too_noisy and text != NOTHING else text


def number(value: float | None, how: str) -> str:
    """A number in one of Python's formats, as ".1e", or a dash where there is none."""
    return NOTHING if value is None or math.isnan(value) else format(value, how)


def provenance(machines: Iterable[Machine]) -> list[str]:
    """Where and with what was measured, and when: a line for all runs that differ in the day alone."""
    days: dict[str, set[str]] = {}
    for machine in machines:
        parts = [
            *(machine.name, machine.cpu, machine.gpu),
            counted(machine.threads, "thread") if machine.threads else "",
            f"torch {machine.torch}" if machine.torch else "",
            *(f"{name} {version}" for name, version in machine.libraries.items()),
            f"commit {machine.commit[:8]}" if machine.commit else "",
        ]
        line = " · ".join(filter(None, parts))
        days.setdefault(line, set()).add(machine.started_at[:10])
    spans = (sorted(found - {""}) for found in days.values())
    ends = (" to ".join(dict.fromkeys((*known[:1], *known[-1:]))) for known in spans)
    return [" · ".join(filter(None, found)) for found in zip(days, ends, strict=True)]


def quietness(machines: Iterable[Machine]) -> str:
    """How busy the machines were when that was observed, at worst; empty where it is unknown."""
    known = [(each.load, each.noise) for each in machines if each.load is not None and each.noise]
    if not known:
        return ""
    load, noise = (max(values) for values in zip(*known, strict=True))
    busy = "busy, so measure anew while nothing else runs"
    verdict = "quiet" if noise < NOISY else "not quiet" if noise < VERY_NOISY else busy
    return f"load {load:.2f} a core, noise {noise:.2f}: the machine was {verdict}"


def table(
    title: str, left: Iterable[str], right: Iterable[str] = (), *, wraps: Sequence[str] = ()
) -> Table:
    """An empty table: columns of words, of which some may wrap, then columns of numbers.

    It has no vertical rules, which would make ten columns wider than the logs they are read in.
    """
    found = Table(
        title=title,
        title_justify="left",
        caption_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for name in left:
        found.add_column(name, no_wrap=name not in wraps, overflow="fold")
    for name in right:
        found.add_column(name, justify="right", no_wrap=True)
    return found


def _scaled(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    name, factor = next((unit for unit in units if abs(value) >= unit[1]), units[-1])
    return f"{value / factor:.3g} {name}"
