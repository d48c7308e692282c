"""What one machine's results are worth on another: flips, and how far a verdict carries."""

import itertools
import math
from collections.abc import Iterable, Sequence

from plots.marked import folded, table, table_without_empty
from strategies.selection.between_machines import Carried, Flip, Places, differing, flips, interval
from strategies.selection.regret import RIGHT_UP_TO
from strategies.selection.verdicts import machines

_FIGURES = (
    *("cases", "right", "median", "95th percentile", "worst", "may not be used"),
    *("× native", "slower than native"),
)


def top(places: Places, found: Sequence[Carried]) -> str:
    """How much it matters that a policy is of another machine, in a sentence."""
    others = [each for each in found if each.is_elsewhere]
    if not others:
        return ""
    pairs = itertools.combinations(places.values(), 2)
    count = max(len([*flips(one, other)]) for one, other in pairs)
    p95s = [each.summary.p95 for each in others]
    return (
        f"Two machines disagree beyond doubt in {count} cases at most. With the policy of another machine "
        f"the 95th percentile of the regret is {min(p95s):.2f} to {max(p95s):.2f}, and the worst "
        f"{_worst(score.regret for each in others for score in each.scores):.2f}."
    )


def flips_between(places: Places) -> str:
    """A line a pair of machines, and below each pair's flips."""
    if len(places) < 2:
        return "There is one machine, so nothing flips."
    lines, lists = [], []
    for (one, mine), (other, its) in itertools.combinations(places.items(), 2):
        shared = [(mine[case], its[case]) for case in mine if case in its]
        chosen = [(a.chosen, b.chosen) for a, b in shared if a.chosen and b.chosen]
        same = sum(a.strategy == b.strategy for a, b in chosen)
        found = sorted(flips(mine, its), key=lambda flip: -math.prod(flip.costs))
        what = differing(machines(mine.values())[-1], machines(its.values())[-1])
        numbers = (len(chosen), same, len(chosen) - same - len(found), len(found))
        lines.append((f"`{one}`, `{other}`", what, *map(str, numbers)))
        if found:
            title = f"{one} and {other}: {len(found)} in all ({what})"
            lists.append(folded(title, _listed(found, one, other)))
    head = ("machines", "differ in", "cases", "same choice", "not told apart", "flips ⇄")
    return "\n\n".join([table(head, lines, 2), *lists])


def _listed(found: Iterable[Flip], one: str, other: str) -> str:
    head = (
        "case",
        f"on `{one}`",
        f"on `{other}`",
        f"the second on `{one}`",
        f"the first on `{other}`",
    )
    lines = []
    for flip in found:
        first, second = flip.one.chosen, flip.other.chosen
        names = [f"`{each.strategy}`" for each in (first, second) if each]
        costs = [f"{cost:.2f}×" for cost in flip.costs]
        lines.append((str(flip.case), *names, *costs))
    return table(head, lines, 3)


def carried_over(found: Sequence[Carried]) -> str:
    """A line a policy and machine, and below where another machine's policy is slower than native."""
    lines = [(f"`{each.policy_of}`", f"`{each.measured_on}`", *_figures(each)) for each in found]
    blocks = [table_without_empty(("policy of", "measured on", *_FIGURES), lines, 2)]
    lost = [each for each in found if each.is_elsewhere and each.slower]
    if lost:
        count = sum(len(each.slower) for each in lost)
        title = f"Where the policy of another machine is slower than native: {count} cases"
        blocks.append(folded(title, _slower(lost)))
    return "\n\n".join(blocks)


def of_drawn(found: Sequence[Carried]) -> str:
    """The same of cases drawn at random, of machines on their own."""
    if not found:
        return "None were measured."
    lines = [(f"`{each.measured_on}`", *_figures(each)) for each in found]
    blocks = [table_without_empty(("policy of, measured on", *_FIGURES), lines, 1)]
    lost = [each for each in found if each.slower]
    if lost:
        blocks.append(_slower(lost))
    return "\n\n".join(blocks)


def _worst(regrets: Iterable[float]) -> float:
    """The largest that is finite: of a choice that may not be used it is not."""
    return max(filter(math.isfinite, regrets), default=math.nan)


def _figures(each: Carried) -> tuple[str, ...]:
    summary, regrets = each.summary, [score.regret for score in each.scores]
    right = sum(regret <= RIGHT_UP_TO for regret in regrets) / summary.cases
    return (
        str(summary.cases),
        f"{right:.0%}",
        *(f"{value:.2f}" for value in (summary.median, summary.p95, _worst(regrets))),
        str(sum(not math.isfinite(regret) for regret in regrets)),
        f"{summary.over_native:.2f}",
        str(len(each.slower)),
    )


def _slower(found: Iterable[Carried]) -> str:
    """All cases in which a policy is slower than native by more than `SLOWER`, beyond doubt."""
    head = ("case", "policy of", "measured on", "chose", "speed over native", "native")
    lines = [
        (
            str(score.case),
            *(f"`{each.policy_of}`", f"`{each.measured_on}`", f"`{score.strategy}`"),
            interval(score.over_native),
            "may not be used" if score.native else "may be used",
        )
        for each in found
        for score in each.slower
    ]
    lines.sort(key=lambda line: (line[-1] == "may not be used", float(line[4].split()[0])))
    return table(head, lines, 4)
