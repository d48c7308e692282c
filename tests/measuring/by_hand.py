"""Measurements and policies made by hand: times that are known, each within a factor of `spread`."""

from strategies.measuring import Case, Cell, Machine, Measurement, Objective, Run, Stability, Timing
from strategies.policy import validators
from strategies.policy.schema import Cell as PolicyCell
from strategies.policy.schema import Evidence, OperationPolicy, Part, Policy

STABLE, UNSTABLE = Evidence(1, 0, 1.0, "inv 2x2"), Evidence(1, 0, 1e9, "inv 2x2")
MACHINE = Machine("here", cpu="a processor", started_at="2026-11-20T10:00:00+00:00")


def timing(seconds, spread=1.0, halves=None):
    return Timing(seconds, seconds / spread, seconds * spread, halves or (seconds, seconds))


def took(
    strategy, seconds=None, spread=1.0, *, halves=None, by=Objective.FORWARD_BACKWARD, **others
):
    cost = {} if seconds is None else {by.value: timing(seconds, spread, halves)}
    return Measurement(strategy, **{"error": 1e-15, **cost, **others})


def cell(case, spread=1.0, **seconds):
    """The time of forward and backward by each strategy."""
    return cell_of(*(took(*each, spread) for each in seconds.items()), case=case)


def cell_of(*measurements, case="pinv 64x8"):
    return Cell(Case.parse(case), measurements)


def stable_cell(case, **ratios):
    """A hard case in which each strategy has that stability ratio."""
    measured = (Measurement(name, stability=Stability(0, 0, r, 0)) for name, r in ratios.items())
    return cell_of(*measured, case=case)


def run_of(*cells, kind="grid", machine=MACHINE, path="here/run.json"):
    return Run(kind, machine, {}, cells, path)


def policy_cell(m, n=None, rhs=1, batch=0, rank=None, use=None, **times):
    """A case of a policy, in which the fastest is used unless another one is named."""
    use = use or min(times, key=times.get)
    return PolicyCell(m, n or m, rhs, batch, rank, use, (), times or {use: 1.0})


def policy_of(*, stability=(), full_rank=None, **cells):
    """A policy that knows cells of operations, in double precision on the CPU."""
    known = {"stability": dict(stability), "full_rank": full_rank}
    operations = {
        name: OperationPolicy(cells={"cpu": {"float64": tuple(of)}}, **known)
        for name, of in cells.items()
    }
    return Policy(operations=operations)


def ranking_of(policy, operation, m, n, dtype="float64", device="cpu", **options):
    """What a policy says of single matrices, and of one right-hand side."""
    return policy.ranking((operation, m, n, 1, 0, dtype, device), **options)


def part_of(cells, **others):
    """A part of a calibration, of this machine and one thread unless others are named."""
    here = {"validators": validators.here(), "device": "cpu", "threads": 1, "machine": {}}
    return Part(**here | others, cells=cells)


def part_using(strategy, **others):
    """A part that knows what to use for the inverse of an 8×8 matrix, and nothing else."""
    return part_of({"inv": {"float64": (policy_cell(8, use=strategy),)}}, **others)
