"""`python -m benchmarks.rounds FILE`: the cells of a grid, all strategies of each timed in turn.

asv starts a process for every strategy and cell, and compares each with native. Here the strategies of
a cell are timed in the same rounds of one process: seconds instead of minutes, and the ratio
between any two of them is paired. It is what a policy rests on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import strategies
from benchmarks.grid import CHOSEN, Block, case_of, chosen_name, is_affordable
from benchmarks.machine import provenance
from strategies import registry
from strategies.commands.common import console, notes, tells_errors
from strategies.commands.progress import progress
from strategies.measuring import Case
from strategies.selection import files, held_out, on_the_spot
from strategies.selection.kept_files import ROUNDS
from strategies.selection.verdicts import Objective


@tells_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the cells, as JSON.")],
    objective: Annotated[
        Objective, typer.Option(help="What is timed.")
    ] = Objective.FORWARD_BACKWARD,
    budget: Annotated[float, typer.Option(help="Seconds for the rounds of a cell.")] = 1.0,
    operation: Annotated[
        str | None, typer.Option(help="Only its cells; in a file of their own, the newest count.")
    ] = None,
) -> None:
    """Measure the cells of the grid that BACKWARD_STRATEGIES_GRID names.

    Every cell is written as it is done. The same command goes on with what is there.
    """
    if operation not in (None, *CHOSEN.single):
        raise ValueError(f"--operation {operation}: there is {', '.join(CHOSEN.single)}")
    timed, conditioned = (
        [case for case in cases if operation in (None, case.operation)] for cases in _cases()
    )
    arguments = {"grid": chosen_name(), "objective": str(objective), "budget": budget}
    arguments |= {"operation": operation} if operation else {}
    arguments |= {"strategies": list(strategies.available())}
    content = ROUNDS.begun(out, arguments, provenance())
    out.parent.mkdir(parents=True, exist_ok=True)
    done = len(content["cases"])
    missing = [*timed, *conditioned][done:]
    try:
        with progress(len(missing), notes) as begin:
            for index, case in enumerate(missing, done):
                begin(case.label)
                measured = _timed(case, objective, budget) if index < len(timed) else _errors(case)
                content["cases"].append(measured)
                files.write_json(out, content)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(content['cases'])} cells are in {out}; the same command goes on from there"
        ) from None
    console.print(f"{len(content['cases'])} cells in {out}")


def _cases() -> tuple[list[Case], list[Case]]:
    """The cells to time, and those where only errors are compared."""
    timed = [
        case
        for blocks in (CHOSEN.single, CHOSEN.batched)
        for operation, block in blocks.items()
        for case in _of_block(operation, block)
        if any(is_affordable(case, name) for name in strategies.available())
    ]
    conditioned = [
        case
        for operation, block in CHOSEN.conditioned.items()
        for log10_cond in CHOSEN.log10_conds
        for case in _of_block(operation, block, log10_cond)
    ]
    return timed, conditioned


def _of_block(operation: str, block: Block, log10_cond: int | None = None) -> Iterator[Case]:
    cells: list[Any] = block.params[1:]  # the first are the strategies
    for shape, batch, dtype, device in itertools.product(*cells):
        yield case_of(operation, shape, batch, dtype, device, log10_cond)


def _timed(case: Case, objective: Objective, budget: float) -> dict[str, Any]:
    names = registry.distinct(case.operation)
    found = held_out.measure(case, names, objective, budget)["strategies"]
    ran = [entry for entry in found if entry["status"] == "ok"]
    for entry in ran:
        _set_seconds(entry, ran[0], objective)
    kept = ("strategy", "status", "error", "peak_bytes")
    return {
        "cell": _cell(case),
        "strategies": [
            {key: entry[key] for key in entry if key in kept or key.startswith(objective)}
            for entry in found
        ],
    }


def _set_seconds(entry: dict[str, Any], partner: dict[str, Any], objective: Objective) -> None:
    """Seconds with an interval such that quotients between strategies are paired ratios.

    That is, the interval of the ratio to a common partner, times the seconds of the partner.
    """
    unit = partner[f"{objective}_seconds"]
    median, low, high = held_out.ratio(entry, partner)
    entry |= {
        f"{objective}_seconds": unit * median,
        f"{objective}_seconds_low": unit * low,
        f"{objective}_seconds_high": unit * high,
    }


def _errors(case: Case) -> dict[str, Any]:
    runnable, statuses = on_the_spot.prepare(case, registry.distinct(case.operation))
    exact = on_the_spot.exact_gradient(case)
    return {
        "cell": _cell(case) | {"log10_cond": case.log10_cond},
        "strategies": [
            {"strategy": name, "status": status}
            | (
                {"error": on_the_spot.error_of(case, runnable[name], exact)}
                if name in runnable
                else {}
            )
            for name, status in statuses.items()
        ],
    }


def _cell(case: Case) -> dict[str, Any]:
    return on_the_spot.case_columns(case) | {"log10_cond": None}


if __name__ == "__main__":
    typer.run(main)
