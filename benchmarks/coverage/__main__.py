"""Times every call in every mode, "auto" and PyTorch in turns, and tells the ratios, worst first."""

from __future__ import annotations

import datetime
import math
import shlex
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer

from benchmarks.coverage.calls import CALLS, SIZES, Size
from benchmarks.coverage.modes import MODES, applies
from strategies import linalg
from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import progress
from strategies.files import write_text
from strategies.measuring.clock import sampler
from strategies.measuring.timing import interleaved
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


class Ratio(NamedTuple):
    """PyTorch's time over ours, with its 95 % interval; NaN where PyTorch has no result."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        """As in a table.

        Example:
            >>> str(Ratio(1.234, 1.1, 1.3)), str(Ratio(math.nan, math.nan, math.nan))
            ('1.23', 'alone')
        """
        return "alone" if math.isnan(self.median) else f"{self.median:.3g}"


def _torch(name: str, *arguments: Any, **options: Any) -> Any:
    owner = torch.linalg if hasattr(torch.linalg, name) else torch
    return getattr(owner, name)(*arguments, **options)


def _ours(name: str, *arguments: Any, **options: Any) -> Any:
    return getattr(linalg, name)(*arguments, **options)


def ratio(place: Place, budget: float) -> Ratio:
    """Times both in the same rounds.

    Raises:
        RuntimeError: "auto" refuses what PyTorch computes.
    """
    made = {}
    for name, functions in ((_NATIVE, _torch), (_AUTO, _ours)):
        torch.manual_seed(0)
        torch.compiler.reset()
        try:
            run = MODES[place.mode](CALLS[place.call], functions, place.size)
            run()
        except RuntimeError as error:
            if name == _NATIVE:
                return Ratio(math.nan, math.nan, math.nan)
            raise RuntimeError(f"{place}: {error}") from error
        made[name] = sampler(run)
    timings = interleaved(made, budget=budget, max_rounds=24)
    # The unit is PyTorch, so that the interval of "auto" is that of the ratio.
    native, auto = timings[_NATIVE], timings[_AUTO]
    return Ratio(*(native.seconds / each for each in (auto.seconds, auto.high, auto.low)))


def table(ratios: Mapping[Place, Ratio], sizes: Sequence[Size]) -> Iterator[str]:
    """Markdown: of each mode a summary, and then all calls in all modes, worst first."""
    yield "| mode | calls and sizes | geometric mean | least | below 0.95 |"
    yield "|---|---:|---:|---:|---:|"
    by_mode = defaultdict(list)
    for place, found in ratios.items():
        if not math.isnan(found.median):
            by_mode[place.mode].append(found)
    for mode, all_found in by_mode.items():
        medians = [each.median for each in all_found]
        slow = sum(each.high < 0.95 for each in all_found)
        mean, least = statistics.geometric_mean(medians), min(medians)
        yield f"| {mode} | {len(medians)} | {mean:.2f} | {least:.2f} | {slow} |"
    yield ""
    yield f"| call | mode | {' | '.join(map(str, sizes))} |"
    yield "|---|---|" + "---:|" * len(sizes)
    rows: dict[tuple[str, str], dict[Size, Ratio]] = defaultdict(dict)
    for place, found in ratios.items():
        rows[place.call, place.mode][place.size] = found
    for (call, mode), row in sorted(rows.items(), key=lambda item: _worst(item[1].values())):
        cells = [str(row[size]) if size in row else "" for size in sizes]
        yield f"| {call} | {mode} | {' | '.join(cells)} |"


def _worst(ratios: Iterable[Ratio]) -> float:
    return min((each.median for each in ratios if not math.isnan(each.median)), default=math.inf)


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
    out: Annotated[Path | None, typer.Option(help="Write the table to this file.")] = None,
) -> None:
    """Time "auto" and PyTorch in turns; a ratio above one means that "auto" is faster."""
    by_text = {str(each): each for each in SIZES}
    sizes = [by_text[each] for each in _matching(size, by_text, "size")]
    modes = _matching(mode or [each for each in MODES if each not in _COMPILED], MODES, "mode")
    places = [
        Place(call, each, at)
        for each in modes
        for call in _matching(calls, CALLS, "call")
        for at in sizes
        if applies(each, CALLS[call], at)
    ]
    ratios, failures = {}, []
    with progress(len(places), notes) as begin:
        for place in places:
            begin(str(place))
            try:
                ratios[place] = ratio(place, budget)
            except RuntimeError as error:
                failures.append(str(error))
    text = "\n".join([*table(ratios, sizes), *failures])
    if out is None:
        console.print(text)
    else:
        write_text(out, f"{_heading(modes)}{text}\n\n{_told_where()}\n")


_INTRODUCTION = """

How many times faster `"auto"` is than PyTorch, by call and by mode of differentiation: the quotient of
two medians of rounds in which both took turns, in float64 on random matrices. *Alone*: PyTorch has no
such result. *Below 0.95*: even the upper end of the 95 % interval is. Forward and backward are timed
together, but in the modes `no_grad`, `jvp` and "compiled forward".

"""


def _heading(modes: Sequence[str]) -> str:
    are_compiled = set(modes) <= set(_COMPILED)
    return f"# Coverage{' of compiled calls' if are_compiled else ''}\n{_INTRODUCTION}"


def _told_where() -> str:
    command = shlex.join(["python", "-m", "benchmarks.coverage", *sys.argv[1:]])
    return (
        f"Measured by `{command}` on {processor()} with {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}, {datetime.date.today()}."
    )


if __name__ == "__main__":
    typer.run(main)
