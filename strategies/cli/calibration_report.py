"""What a calibration has changed, in tables."""

from collections import Counter
from collections.abc import Sequence

from strategies.cli.common import console
from strategies.integration.workload import Workload
from strategies.measuring import Case, Objective
from strategies.policy import BASELINE
from strategies.policy.schema import LIMIT, Policy
from strategies.selection.calibrating import Change, mean_gain
from strategies.selection.stability import Stabilities, evidence_in
from strategies.selection.text import seconds, table

MOST_NAMED = 10
"""Cases that are named."""


def tell_changes(place: str, found: Sequence[Change]) -> None:
    """What another choice gains in the measured cases."""
    columns = "cells", "other choice", "times as fast there"
    lines = table(f"What has changed ({place})", ("operation", "dtype"), columns)
    changed = [each for each in found if each.after != each.before]
    for key, count in sorted(Counter(map(_kind, found)).items()):
        there = [each for each in changed if _kind(each) == key]
        gain = f"{mean_gain(there):.2f}×" if there else "-"
        lines.add_row(*key, str(count), str(len(there)), gain)
    console.print(lines)
    if not changed:
        console.print("The policy was right in all measured cells.")
        return
    lines = table("The most", ("case", "before", "now"), ("times as fast",), wraps=("case",))
    for each in sorted(changed, key=lambda each: -each.gain)[:MOST_NAMED]:
        lines.add_row(str(each.case), each.before, each.after, f"{each.gain:.2f}×")
    console.print(lines)
    where = f"In {len(changed)} of {len(found)} measured cells another strategy is used"
    console.print(f"{where}, and is {mean_gain(changed):.2f} times as fast, as a geometric mean.")


def tell_program(place: str, program: Workload, found: Sequence[Change], after: Policy) -> None:
    """What "auto" gains at every place of a program, and in all."""
    by_case = {each.case: each for each in found}
    lines = table(
        f"What the program gains ({place})",
        ("where", "call", "before", "now"),
        ("count", "torch", "before", "now", "× torch", "stability,\ntorch", "now"),
        wraps=("where", "call"),
    )
    sums = [0.0, 0.0, 0.0]
    for call in program.calls:
        change = by_case.get(Case.parse(call.case)) if call.case else None
        if change is None:
            continue
        names = BASELINE, change.before, change.after
        costs = change.cell.costs(Objective.FORWARD_BACKWARD)
        took = [costs[name].seconds if name in costs else None for name in names]
        sums = [total + call.count * (one or 0.0) for total, one in zip(sums, took, strict=True)]
        known = evidence_in(after, change.case)
        ratios = [f"{known[name].worst:.1g}" if name in known else "-" for name in names]
        lines.add_row(
            *(call.at, str(call), change.before, change.after, str(call.count)),
            *map(seconds, took),
            f"{took[0] / took[2]:.2f}" if took[0] and took[2] else "-",
            *(ratios[0], ratios[2]),
        )
    console.print(lines)
    torch_s, before_s, now_s = sums
    if not now_s:
        console.print("No call of the program could be measured.")
        return
    share = f", of a run of {seconds(program.seconds)}" if program.seconds else ""
    console.print(
        f"In all: torch {seconds(torch_s)}, before {seconds(before_s)}, now {seconds(now_s)}{share}. "
        f'"auto" takes {now_s / torch_s:.2f} of the time of torch and {now_s / before_s:.2f} of its '
        f"own before. Stability ratios above {LIMIT:.0f} are errors that rounding does not explain."
    )


def tell_stability(found: Stabilities) -> None:
    """What the check on this machine has shown."""
    evidence = {
        f"{name} in {operation}": each
        for operation, by_name in found.items()
        for name, each in by_name.items()
    }
    if bad := "; ".join(
        f"{what}: {each.worst:.1e} in {each.case}"
        for what, each in evidence.items()
        if each.judged and not each.is_stable
    ):
        console.print(f"Not stable on this machine, and not used (limit {LIMIT:.0f}): {bad}")
        return
    judged = sum(each.judged for each in evidence.values())
    worst = max((each.worst for each in evidence.values()), default=0.0)
    ratios = f"ratios up to {worst:.2g}, limit {LIMIT:.0f}"
    console.print(f"Stability, checked here on {judged} hard cases: {ratios}.")


def _kind(change: Change) -> tuple[str, str]:
    return change.case.operation, change.case.dtype_name
