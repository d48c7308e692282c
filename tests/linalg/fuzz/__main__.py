"""`python -m tests.linalg.fuzz`: the command."""

from __future__ import annotations

import argparse
import collections
import time

import torch

from .calls import draw
from .check import check


def main() -> int:
    """Runs the calls asked for; exit status 1 if one deviates in a way that is not documented."""
    parser = argparse.ArgumentParser(prog="python -m tests.linalg.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one call")
    options = parser.parse_args()
    torch.set_num_threads(1)
    numbers = range(options.calls) if options.only is None else [options.only]
    known: collections.Counter[str] = collections.Counter()
    bad, start = 0, time.monotonic()
    for number in numbers:
        call = draw(options.seed, number)
        names, rest = check(call)
        known.update(names)
        bad += bool(rest)
        for each in rest:
            print(f"--seed {options.seed} --only {number}  {call}\n    {each}", flush=True)
    for name, count in known.most_common():
        print(f"{count:6} {name}")
    print(
        f"{len(numbers)} calls in {time.monotonic() - start:.0f} s: {bad} deviate in ways that "
        "docs/differences.md does not name"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
