"""`python -m benchmarks.cuda FILE`: measures, for some minutes, what tells most of a CUDA device.

The cases are chosen as `backward-strategies calibrate` chooses them; PyTorch's own is measured in each. The
file is one of results, of which `backward-strategies policy build` makes a policy.
"""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

import strategies
from strategies import policy
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import countdown
from strategies.measuring import Case, Writer, describe, grid_cases, with_load_and_noise
from strategies.policy.schema import Policy
from strategies.selection import calibrating
from strategies.selection.planning import Plan

GRID, DEVICE = "cpu", "cuda:0"

FEW = 160


@reports_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the cells, as JSON.")],
    minutes: Annotated[float, typer.Option(min=0.0, help="How long to measure.")] = 10.0,
    machine: Annotated[str, typer.Option(metavar="NAME", help="What to call the machine.")] = "gpu",
) -> None:
    """Measures a CUDA device; the same command goes on with what is in the file."""
    arguments = {"grid": GRID, "device": DEVICE, "strategies": list(strategies.available())}
    here = msgspec.structs.replace(with_load_and_noise(describe()), name=machine)
    writer = Writer(out, "grid", arguments, here)
    cases = [case for case in grid_cases.timed(GRID, [DEVICE]) if is_quick(case)]
    plan = Plan(cases, without_svd(Policy.read(policy.SHIPPED)))
    with countdown(60 * minutes, notes) as begins:
        calibrating.measured(plan, writer, 60 * minutes, beside=[policy.BASELINE], begins=begins)
    console.print(f"{len(writer.cells)} cells in {out}")


def is_quick(case: Case) -> bool:
    """Whether no strategy decides the rank of thousands of matrices one by one on the host."""
    return case.rank is None or case.batch <= FEW


def without_svd(known: Policy) -> Policy:
    """A policy without truncated SVDs of what has full rank, which take minutes for a large batch."""
    found = dict(known.operations)
    for operation, entry in known.operations.items():
        if not entry.any_rank:
            kept = {
                name: of for name, of in entry.stability.items() if name != SVDTruncatedPinv.name
            }
            found[operation] = msgspec.structs.replace(entry, stability=kept)
    return msgspec.structs.replace(known, operations=found)


if __name__ == "__main__":
    typer.run(main)
