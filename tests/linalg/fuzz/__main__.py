"""`python -m tests.linalg.fuzz`: the command."""

import argparse
import collections
import faulthandler
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import torch

from . import check, draw


def main() -> int:
    """Runs the calls asked for; exit status 1 if one crashes, or deviates and no document says so."""
    parser = argparse.ArgumentParser(prog="python -m tests.linalg.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one call")
    options = parser.parse_args()
    numbers = range(options.calls) if options.only is None else (options.only,)
    known: collections.Counter[str] = collections.Counter()
    bad, start, pool = 0, time.monotonic(), _process()
    for number in numbers:
        try:
            names, rest = pool.submit(_checked, options.seed, number).result()
        except BrokenProcessPool:
            names, rest, pool = set(), ["crashed"], _process()
        known.update(names)
        bad += bool(rest)
        for each in rest:
            call = draw(options.seed, number)
            print(f"--seed {options.seed} --only {number}  {call}\n    {each}", flush=True)
    for name, count in known.most_common():
        print(f"{count:6} {name}")
    print(
        f"{len(numbers)} calls in {time.monotonic() - start:.0f} s: {bad} deviate in ways that "
        "docs/differences.md does not name"
    )
    return 1 if bad else 0


def _process() -> ProcessPoolExecutor:
    """One that a crash ends, and says where."""
    return ProcessPoolExecutor(1, initializer=_set_up)


def _set_up() -> None:
    faulthandler.enable()
    torch.set_num_threads(1)


def _checked(seed: int, number: int) -> tuple[set[str], list[str]]:
    names, rest = check(draw(seed, number))
    return names, [*map(str, rest)]


if __name__ == "__main__":
    raise SystemExit(main())
