"""`python -m benchmarks.peers.stability FILE`: how stable JAX and lineax are in hard cases.

The cases are every third of `backward-strategies stability` with the same seed, so that few are of all
kinds. Nothing is timed, so the libraries run in this process.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.peers import jax_peer, lineax_peer
from benchmarks.peers.comparison import PEERS
from benchmarks.peers.jax_peer import Tensors
from strategies import operations
from strategies.cli.common import reports_errors
from strategies.cli.stability import judged_first
from strategies.measuring import Case, Cell, Writer, describe
from strategies.measuring.stability import Computation, judged_cells
from strategies.selection.draws import hard_cases


@reports_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the cells, as JSON.")],
    cases: Annotated[int, typer.Option(min=1, help="How many cases to judge.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Determines the cases.")] = 1,
) -> None:
    """Compare results and gradients of other libraries with exact ones, in cases drawn to be hard.

    Every case is written as soon as it is judged. The same command resumes an interrupted run.
    """
    writer = Writer(out, "peer_stability", {"seed": seed}, describe(PEERS))
    drawn = itertools.islice(hard_cases("cpu", seed), 0, None, 3)
    judged_first(drawn, cases, judged, writer)


def judged(cases: Iterator[Case]) -> Iterator[Cell]:
    """Every library that has the operation, in those cases in which an exact result is known."""
    for case in cases:
        yield from judged_cells([case], (), _libraries(case))


def _libraries(case: Case) -> Mapping[str, Computation]:
    found: dict[str, Computation] = {}
    if not operations.get(case.operation).pivoted or jax_peer.pivots_as_torch(case):
        found["jax"] = _by_jax
    if case.operation in lineax_peer.SOLVED:
        found["lineax"] = _by_lineax
    return found


def _by_jax(case: Case) -> tuple[Tensors, Tensors]:
    return jax_peer.differentiated(jax_peer.differentiable(case.operation), case)


def _by_lineax(case: Case) -> tuple[Tensors, Tensors]:
    is_full = case.known_rank in (None, min(case.shape))
    function = lineax_peer.differentiable(case.operation, full_rank=is_full)
    return jax_peer.differentiated(function, case)


if __name__ == "__main__":
    typer.run(main)
