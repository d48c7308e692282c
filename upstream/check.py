"""`python -m upstream.check NAME`: all that a reviewer of one patch wants to see, in some minutes."""

import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import torch
import typer
from torch.utils.benchmark import Compare, Timer

from strategies.cli.common import console, reports_errors
from strategies.policy.schema import LIMIT, in_words
from upstream.gradients import check_gradients, is_patched
from upstream.patch import NAMES, Gradient, Timed, cases, enabled

_ROUNDS = 7
"""Of timing, PyTorch and the patch in turns."""

_SECONDS = 0.05
"""For each time that is taken, at least."""


@reports_errors
def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    seed: Annotated[int, typer.Option(min=0, help="Determines the cases of stability.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many cases of stability.")] = 40,
) -> None:
    """Build a patch, put it in the place of PyTorch's derivative, and compare the two.

    The exit code is 1 if a check fails.
    """
    # Threads that wait for each other on a busy machine would be all that is timed.
    torch.set_num_threads(1)
    with enabled(name):
        pass  # it is compiled
    failures = [*_samples(name), *derivatives(name), *derivatives_of_samples(name)]
    _times(name)
    failures += _stability(name, seed, count)
    for failure in failures:
        console.print(f"FAILED {failure}")
    console.print("failed" if failures else "passed")
    raise typer.Exit(bool(failures))


def _samples(name: str) -> Iterator[str]:
    console.print("\nSamples: a figure, PyTorch's and the patch's, and its limit")
    for label, figure, limit in cases(name).samples():
        before = figure()
        with enabled(name):
            after = figure()
        console.print(f"  {label}: {before:.2g}, {after:.2g}, limit {limit:.2g}")
        # What is not a number is above every limit.
        if before <= limit:
            yield f"sample {label}: PyTorch is within the limit"
        if not after <= limit:
            yield f"sample {label}: the patch is above the limit"


def derivatives(name: str) -> Iterator[str]:
    """What is wrong with the derivatives of a patch in its cases, a line each."""
    return _gradients(name, "cases", cases(name).gradients())


def derivatives_of_samples(name: str) -> Iterator[str]:
    """The same in the samples by which PyTorch tests its own."""
    from upstream import opinfo

    return _gradients(name, "PyTorch's samples", opinfo.gradients(cases(name).OPINFO))


def _gradients(name: str, source: str, drawn: Iterable[Gradient]) -> Iterator[str]:
    passed = 0
    for case in drawn:
        with enabled(name):
            error = _error(case) if is_patched(case) else "the derivative is PyTorch's"
        if not error:
            passed += 1
        else:
            yield f"{case.label}: {error} (PyTorch: {_error(case) or 'passes'})"
    console.print(f"\nGradients of three orders, {source}: {passed} passed")
    if not passed:
        yield f"{source}: no gradient was checked"


def _error(case: Gradient) -> str:
    """What is wrong with the derivatives that are in place, in a line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_gradients(case)
    except (RuntimeError, AssertionError) as error:
        return str(error).splitlines()[0]
    return ""


def _times(name: str) -> None:
    measured = []
    for timed in cases(name).timed():
        backward = _backward(timed)
        with enabled(name):
            patched = _backward(timed)
        for _ in range(_ROUNDS):
            for by, call in (("PyTorch", backward), ("patch", patched)):
                timer = Timer(
                    "call()",
                    globals={"call": call},
                    label=f"backward of {name}",
                    sub_label=timed.label,
                    description=by,
                )
                measured.append(timer.blocked_autorange(min_run_time=_SECONDS))
    compared = Compare(measured)
    console.print()
    compared.print()


def _backward(timed: Timed) -> Callable[[], object]:
    """The gradient at a graph that is kept."""
    output = timed.function(*timed.inputs)
    generator = torch.Generator().manual_seed(0)
    cotangent = torch.randn(output.shape, dtype=output.dtype, generator=generator)
    return lambda: torch.autograd.grad(output, timed.inputs, cotangent, retain_graph=True)


def _stability(name: str, seed: int, count: int) -> Iterator[str]:
    console.print(f"Stability ratios, limit {LIMIT:.0f}, seed {seed}: median, worst, above")
    pairs = list(cases(name).stability(seed, count))
    for by, ratios in zip(("PyTorch", "patch"), zip(*pairs, strict=True), strict=True):
        above = sum(not ratio <= LIMIT for ratio in ratios)
        worst = in_words(max(ratios))
        console.print(f"  {by}: {statistics.median(ratios):.2g}, {worst}, {above} of {len(ratios)}")
    worse = [pair for pair in pairs if pair[1] > LIMIT >= pair[0]]
    if worse:
        yield f"stability: above the limit in {len(worse)} cases in which PyTorch is below it"


if __name__ == "__main__":
    typer.run(main)
