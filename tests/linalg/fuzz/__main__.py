"""`python -m tests.linalg.fuzz`: the command."""

from __future__ import annotations

import argparse
import collections
import mmap
import subprocess
import sys
import tempfile
import time

import torch

from .calls import draw
from .check import check


def main() -> int:
    """Runs the calls asked for; exit status 1 if one crashes, or deviates and no document says so."""
    parser = argparse.ArgumentParser(prog="python -m tests.linalg.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one call")
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--place", help="a file of eight bytes for the number of the present call")
    options = parser.parse_args()
    if options.only is not None:
        return _run(range(options.only, options.only + 1), options.seed, None)
    stop = options.first + options.calls
    if options.place:
        return _run(range(options.first, stop), options.seed, options.place)
    return _in_processes(range(options.first, stop), options.seed)


def _in_processes(numbers: range, seed: int) -> int:
    """Runs the calls in a process that a crash ends, and those after a crash in another."""
    first, status = numbers.start, 0
    with tempfile.NamedTemporaryFile() as place:
        place.write(bytes(8))
        place.flush()
        while first < numbers.stop:
            options = {
                "seed": seed,
                "first": first,
                "calls": numbers.stop - first,
                "place": place.name,
            }
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            command = [sys.executable, "-m", __spec__.name, *words]
            code = subprocess.run(command, check=False).returncode
            if code in (0, 1):
                return status | code
            place.seek(0)
            crashed = int.from_bytes(place.read(8), "little")
            print(f"--seed {seed} --only {crashed}  {draw(seed, crashed)}\n    exit status {code}")
            first, status = crashed + 1, 1
    return status


def _run(numbers: range, seed: int, place: str | None) -> int:
    torch.set_num_threads(1)
    known: collections.Counter[str] = collections.Counter()
    bad, start = 0, time.monotonic()
    present = _shared(place)
    for number in numbers:
        present[:8] = number.to_bytes(8, "little")
        call = draw(seed, number)
        names, rest = check(call)
        known.update(names)
        bad += bool(rest)
        for each in rest:
            print(f"--seed {seed} --only {number}  {call}\n    {each}", flush=True)
    for name, count in known.most_common():
        print(f"{count:6} {name}")
    print(
        f"{len(numbers)} calls in {time.monotonic() - start:.0f} s: {bad} deviate in ways that "
        "docs/differences.md does not name"
    )
    return 1 if bad else 0


def _shared(place: str | None) -> bytearray | mmap.mmap:
    """Eight bytes, of which a crash leaves what was written last."""
    if place is None:
        return bytearray(8)
    with open(place, "r+b") as file:  # noqa: PTH123 - for its descriptor
        return mmap.mmap(file.fileno(), 8)


if __name__ == "__main__":
    raise SystemExit(main())
