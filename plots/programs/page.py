"""What the results of the programs say, as Markdown."""

import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from benchmarks.programs import SEEN, UNTOUCHED, named
from benchmarks.programs.program import Program
from benchmarks.training.choices import CLASSES, Choice, quantile
from benchmarks.training.memory_plan import Plan
from benchmarks.training.results import Result
from plots import marked
from strategies.selection.regret import RIGHT_UP_TO
from strategies.selection.text import NOTHING, number, provenance, seconds, size, times

SLOWER, FASTER, MUCH = 0.97, 1.3, 2.0
"""From when on a ratio is called so; what is between the first two is as fast."""


def summary(results: Sequence[Result]) -> str:
    """How many programs gain, and which lose."""
    speeds = {each.program: each.faster(each.auto)[0] for each in results}
    memory = [each for each in results if each.memory(each.auto) < 1 / MUCH]
    slower = [f"{name} ({times(value)})" for name, value in speeds.items() if value < SLOWER]
    gains = (
        f"By `replace_torch()`, {_count(speeds, FASTER)} of {len(results)} programs take a step at "
        f"least {FASTER} times as fast, and {_count(speeds, MUCH)} at least {MUCH:g} times; "
        f"{len(memory)} need less than half of the memory."
    )
    losses = (
        f"Slower than {SLOWER}×: {', '.join(slower)}." if slower else f"None is below {SLOWER}×."
    )
    where = "; ".join(provenance(each.machine for each in results))
    return f"{gains} {losses}\n\nMeasured on: {where}."


def _count(speeds: dict[str, float], least: float) -> int:
    return sum(value >= least for value in speeds.values())


def table(results: Sequence[Result]) -> str:
    """A line a program, the fastest by "auto" first."""
    head = (
        *("program", "step by PyTorch", '`"auto"`', "best single strategy", "JAX", "ceiling"),
        *("share of calls / backwards", 'memory by PyTorch, `"auto"`'),
        "losses differ by, by rounding alone",
    )
    lines = [
        (
            f"[{each.program}](#{_anchor(named(each.program))})",
            seconds(each.torch.step.seconds),
            _speed(each.faster(each.auto)),
            f"{times(each.faster(each.tuned)[0])} `{each.tuned.strategy}`",
            times(each.by_jax[0]) if each.by_jax else NOTHING,
            times(each.ceiling),
            f"{each.forward:.0%} / {each.backward:.0%}",
            f"{size(each.torch.peak_bytes)}, {size(each.auto.peak_bytes)}",
            _difference(each),
        )
        for each in sorted(results, key=lambda each: -each.faster(each.auto)[0])
    ]
    return marked.table(head, lines, 1)


def _difference(result: Result) -> str:
    if named(result.program).differs:
        return "see there"
    return f"{number(result.difference, '.0e')}, {number(result.by_rounding, '.0e')}"


def _speed(found: tuple[float, float, float]) -> str:
    value, low, high = found
    # The interval is on a line of its own in a narrow column.
    return f"{value:.2f}× ({low:.2f}\u00a0to\u00a0{high:.2f})"


def regret_table(results: Sequence[Result]) -> str:
    """How right "auto" is in the calls of either half of the programs."""
    head = ("half", "cases", "right", *(f"below {limit}" for limit in CLASSES))
    head += (f"{CLASSES[-1]} and more", "95th percentile", "worst")
    lines = []
    for name, half in (("seen", SEEN), ("untouched", UNTOUCHED)):
        if not (found := _choices(results, half)):
            continue
        regrets = [each.regret for each in found]
        classes = Counter(bisect.bisect(CLASSES, regret) for regret in regrets)
        counts = [str(classes[i]) for i in range(len(CLASSES) + 1)]
        right = f"{sum(regret <= RIGHT_UP_TO for regret in regrets) / len(found):.0%}"
        worst = max(found, key=lambda each: each.regret)
        ends = f"{quantile(regrets, 0.95):.2f}", f"{worst.regret:.2f} in `{worst.case}`"
        lines.append((name, str(len(found)), right, *counts, *ends))
    return marked.table(head, lines, 1)


def _choices(results: Iterable[Result], half: Collection[Program]) -> list[Choice]:
    own = (each.choices for each in results if named(each.program) in half)
    return list({choice.case: choice for choices in own for choice in choices}.values())


def paragraphs(results: Sequence[Result]) -> str:
    """A heading, a paragraph and the calls of each program."""
    return "\n\n".join(map(_paragraph, results))


def _paragraph(result: Result) -> str:
    program = named(result.program)
    half = "seen" if program in SEEN else "untouched"
    sizes = ", ".join(f"{name} {value}" for name, value in program.sizes[result.size].items())
    full = ", ".join(f"{name} {value}" for name, value in program.sizes["full"].items())
    parts = [f"### {program.title}", program.description]
    if program.differs:
        last = [way.losses[-1] for way in (result.torch, result.auto)]
        ends = " and ".join(number(loss, ".3g") for loss in last)
        parts.append(
            f"The losses differ: {program.differs}. After {len(result.torch.losses)} steps "
            f'they are {ends}, by PyTorch and by `"auto"`.'
        )
    parts.append(
        f"`benchmarks/programs/{program.name}.py`, of the {half} half, after {program.source}. "
        f"Measured with {sizes}; the full size has {full}."
    )
    head = ("call", "a step", '`"auto"` tries', "fastest", 'regret of `"auto"`', "× PyTorch")
    calls = [
        (
            f"`{each.case.removesuffix(' cpu')}`",
            f"{each.count:g}",
            f"`{each.tried}`",
            f"`{each.fastest}`",
            f"{each.regret:.2f}",
            f"{each.over_torch:.2f}",
        )
        for each in result.choices
    ]
    return "\n\n".join([*parts, marked.table(head, calls, 1)])


def plan_table(plans: Iterable[Plan]) -> str:
    """What the largest inverses would take, in bytes."""
    head = ("case", "the matrices", "PyTorch", '`"auto"`', "strategy", "counted at n =")
    lines = [
        (
            f"`{str(each.case).removesuffix(' cpu')}`",
            f"{each.matrices:,}",
            f"{each.torch:.2f} × = {each.torch * each.matrices:,.0f}",
            f"{each.auto:.2f} × = {each.auto * each.matrices:,.0f}",
            f"`{each.strategy}`",
            ", ".join(map(str, each.checked)),
        )
        for each in plans
    ]
    return marked.table(head, lines, 1)


def _anchor(program: Program) -> str:
    kept = (c for c in program.title.lower().replace("×", "") if c.isalnum() or c in " -")
    return "".join(kept).replace(" ", "-")
