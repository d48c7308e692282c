"""What the measurements of hard cases say of every strategy's stability."""

from collections.abc import Iterable, Mapping, Sequence

from strategies import operations, policy
from strategies.errors import UnusableFileError
from strategies.measuring import Case, Cell, Run
from strategies.policy.schema import LIMIT, Evidence, Policy

AUTO = "auto"
"""What the policy chooses, judged beside the strategies."""

Stabilities = dict[str, dict[str, Evidence]]
"""By operation (the one whose cells answer) and strategy, over all dtypes: a strategy's stability is in
its formula, and neither in the precision nor in the machine."""


Known = Mapping[str, Evidence]
"""What is known of the strategies of one operation, by name."""


def summary(cells: Iterable[Cell]) -> Stabilities:
    """What these cells say, of every strategy that ran in them."""
    found: Stabilities = {}
    for cell in cells:
        by_name = found.setdefault(operations.get(cell.case.operation).policy_operation, {})
        for each in cell:
            if each.strategy == AUTO:
                continue
            known = by_name.get(each.strategy, Evidence(0, 0, 0.0, ""))
            judged, refused, worst, case = known.judged, known.refused, known.worst, known.case
            if each.stability is None:
                refused += 1
            else:
                judged += 1
                if each.stability.worst >= worst:
                    worst, case = each.stability.worst, str(cell.case)
            by_name[each.strategy] = Evidence(judged, refused, worst, case)
    return found


def evidence(runs: Sequence[Run]) -> Stabilities:
    """What results say, and the shipped policy of the operations that they lack."""
    measured = summary(cell for run in runs if run.kind == "stability" for cell in run.cells)
    return {**_shipped(), **measured}


def evidence_in(known: Policy, case: Case) -> Known:
    """What a policy says of a case's operation."""
    return known.of(operations.get(case.operation).policy_operation).stability


def why_unstable(strategy: str, known: Known) -> str:
    """Why a strategy may not be used, by the evidence; empty where it may."""
    found = known.get(strategy)
    if found is None:
        return "its stability was not measured: `backward-strategies stability` does"
    if not found.judged:
        return f"refused all {found.refused} hard cases"
    if found.is_stable:
        return ""
    worst = f"{found.worst_in_words} times what rounding explains (limit {LIMIT:.0f})"
    return f"unstable: {worst} in {found.case}"


def _shipped() -> Stabilities:
    try:
        shipped = Policy.read(policy.SHIPPED)
    except UnusableFileError:
        return {}
    return {operation: entry.stability for operation, entry in shipped.operations.items()}
