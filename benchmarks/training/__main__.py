"""`python -m benchmarks.training docs/data/programs`: measures programs, in training."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.programs import PROGRAMS, named
from benchmarks.training import results
from benchmarks.training.measuring import measured
from benchmarks.training.results import Result
from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import progress
from strategies.measuring.machine import describe
from strategies.selection import text
from strategies.selection.stability import AUTO


@reports_errors
def main(
    out: Annotated[
        Path, typer.Argument(metavar="DIR", help="One file a program, as JSON, packed.")
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[PROGRAM]...", help="By default all.")
    ] = None,
    size: Annotated[str, typer.Option(help="small or full.")] = "small",
    steps: Annotated[int, typer.Option(min=1, help="Whose losses are kept.")] = 100,
    budget: Annotated[float, typer.Option(min=0.0, help="Seconds for the rounds.")] = 10.0,
) -> None:
    """Run programs by PyTorch, by "auto" and by the best strategy, all in the same rounds.

    The same command resumes an interrupted run: it measures what this commit has not measured here.
    """
    programs = [named(name) for name in names] if names else PROGRAMS
    if size not in (sizes := ("small", "full")):
        raise ValueError(f"--size {size}: there is {' and '.join(sizes)}")
    machine = describe()
    missing = [
        each for each in programs if not results.kept(_path(out, each.name), size, steps, machine)
    ]
    try:
        with progress(len(missing), notes) as begin:
            for program in missing:
                begin(program.name)
                found = measured(program, size, steps=steps, budget=budget)
                found.save(_path(out, program.name), parents=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command resumes the run, from {out}") from None
    console.print(_table(results.load(out)))


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json.gz"


def _table(found: list[Result]) -> object:
    columns = ("torch", AUTO, "best strategy", "JAX", "ceiling", "memory", "losses differ by")
    lines = text.table("Steps, times as fast as torch's", ["program", "strategy"], columns)
    for each in found:
        lines.add_row(
            each.program,
            each.tuned.strategy,
            text.seconds(each.torch.step.seconds),
            text.times(each.faster(each.auto)[0]),
            text.times(each.faster(each.tuned)[0]),
            text.times(each.by_jax[0]) if each.by_jax else text.NOTHING,
            text.times(each.ceiling),
            text.times(each.memory(each.auto)),
            text.number(each.difference, ".0e"),
        )
    return lines


if __name__ == "__main__":
    typer.run(main)
