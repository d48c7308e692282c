"""`python -m benchmarks.coverage`: every call in every mode, "auto" and PyTorch in turns, worst first."""

import datetime
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer

from benchmarks.coverage import results
from benchmarks.coverage.calls import CALLS, SIZES, Size
from benchmarks.coverage.modes import MODES, applies, is_usual, timed
from benchmarks.coverage.results import Coverage, Ratio, Row
from strategies import linalg
from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import progress
from strategies.measuring.clock import sampler
from strategies.measuring.timing import interleaved
from strategies.policy.schema import rounded
from strategies.policy.validators import processor

_NATIVE, _AUTO = "PyTorch", "auto"

_COMPILED = "compiled", "compiled forward"


class Place(NamedTuple):
    """Where a time is taken."""

    call: str
    mode: str
    size: Size

    def __str__(self) -> str:
        return f"{self.call}, {self.mode}, {self.size}"


def call_torch(name: str, *arguments: Any, **options: Any) -> Any:
    """PyTorch's function of this name."""
    owner = torch.linalg if hasattr(torch.linalg, name) else torch
    return getattr(owner, name)(*arguments, **options)


def call_ours(name: str, *arguments: Any, **options: Any) -> Any:
    """That of `strategies.linalg`."""
    return getattr(linalg, name)(*arguments, **options)


def ratio(place: Place, budget: float) -> Ratio:
    """Times both in the same rounds; RuntimeError if "auto" refuses what PyTorch computes."""
    made = {}
    for name, functions in ((_NATIVE, call_torch), (_AUTO, call_ours)):
        torch.manual_seed(0)
        torch.compiler.reset()
        try:
            run = timed(place.mode, CALLS[place.call], functions, place.size)
            run()
        except RuntimeError as error:
            if name == _NATIVE:
                return Ratio(None, None, None)
            raise RuntimeError(f"{place}: {error}") from error
        made[name] = sampler(run)
    timings = interleaved(made, budget=budget, max_rounds=24)
    # The unit is PyTorch, so that the interval of "auto" is that of the ratio.
    return Ratio(*map(rounded, timings[_NATIVE].over(timings[_AUTO])))


def _matching(texts: list[str] | None, known: Iterable[str], kind: str) -> list[str]:
    chosen = [each for each in known if not texts or each in texts]
    if unknown := set(texts or ()) - set(chosen):
        raise ValueError(f"no {kind} {', '.join(sorted(unknown))}: there is {', '.join(known)}")
    return chosen


@reports_errors
def main(
    calls: Annotated[list[str] | None, typer.Argument(metavar="[CALL]...")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="By default all but the compiled.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="As 32x32.")] = None,
    budget: Annotated[float, typer.Option(help="Seconds for the rounds of a call.")] = 0.1,
    out: Annotated[Path | None, typer.Option(help="Keep what is measured, as .json.gz.")] = None,
) -> None:
    """Time "auto" and PyTorch in turns; a ratio above one means that "auto" is faster."""
    sizes = [Size.parse(each) for each in size] if size else SIZES
    modes = _matching(mode or [each for each in MODES if each not in _COMPILED], MODES, "mode")
    places = [
        Place(call, each, at)
        for each in modes
        for call in _matching(calls, CALLS, "call")
        for at in sizes
        if applies(each, CALLS[call], at) and (size or is_usual(each, at))
    ]
    rows, failures = [], []
    with progress(len(places), notes) as begin:
        for place in places:
            begin(str(place))
            try:
                rows.append(Row(place.call, place.mode, str(place.size), ratio(place, budget)))
            except RuntimeError as error:
                failures.append(str(error))
    found = Coverage(
        command=shlex.join(["python", "-m", "benchmarks.coverage", *sys.argv[1:]]),
        processor=processor(),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
        date=str(datetime.date.today()),
        rows=rows,
        failures=failures,
    )
    if out is None:
        console.print("\n".join([*results.summary(rows), "", *results.calls(rows), *failures]))
    else:
        found.save(out)


if __name__ == "__main__":
    typer.run(main)
