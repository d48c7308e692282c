"""The work that every built-in strategy does per backward, pinned: `python -m benchmarks.work_pins`.

Floating-point operations, torch calls and peak bytes do not depend on how busy the machine is, so a
regression in work shows where one in time would drown in noise. They do depend on PyTorch, whose
release is pinned too.
"""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from strategies import operations, registry
from strategies.measuring import Case, Cell, Measurement, peak_bytes, store, work_of
from strategies.measuring.measure import prepare

PINS = Path(__file__).with_name("work_pins.json")
UPDATE = "python -m benchmarks.work_pins --update"

_QUANTITIES = {"flops": 1.0, "calls": 1.0, "peak_bytes": 1.02}
"""What is pinned, and the factor up to which it has not grown.

LAPACK libraries ask for workspaces of different sizes, and torch allocates them as tensors.
"""


def cases(operation: str) -> list[Case]:
    """The pinned cases of one operation."""
    record = operations.get(operation)
    rhs = " k=2" if record.arity == 2 else ""
    shapes = [f"96x96{rhs}"] if record.square else ["96x96", f"256x16{rhs}", "16x256"]
    shapes += ["64x16 rank=5"] if record.truncates else []
    shapes += ["64x8x8"]
    return [Case.parse(f"{operation} {shape}") for shape in shapes]


def count(case: Case) -> Cell:
    """The work of one backward by every built-in strategy; none where it refuses the case."""
    runnable, found = prepare(case, registry.built_in())
    for name, backward in runnable.items():
        flops, calls = work_of(backward)
        peak = peak_bytes(backward)
        found[name] = Measurement(name, flops=flops, calls=calls, peak_bytes=peak)
    return Cell(case, tuple(msgspec.structs.replace(each, note="") for each in found.values()))


def growth(pinned: Measurement, counted: Measurement) -> list[str]:
    """What is more than pinned, in words."""
    if pinned.flops is not None and counted.flops is None:
        return ["the case is refused, and was not"]
    grown = []
    for quantity, factor in _QUANTITIES.items():
        old, new = getattr(pinned, quantity), getattr(counted, quantity)
        if old is not None and new > old * factor:
            grown.append(f"{quantity} grew from {old:,} to {new:,} ({new / max(old, 1):.2f}×)")
    return grown


def pins() -> store.Run:
    """The pinned work, and with which release of PyTorch."""
    (run,) = store.load(PINS, "work")
    return run


def main(
    update: Annotated[bool, typer.Option("--update", help="Pin what is counted now.")] = False,
) -> None:
    """Count the work of every built-in strategy, and show or pin what changed."""
    pinned = {cell.case: cell for cell in pins().cells} if PINS.exists() else {}
    counted = [count(case) for name in operations.names() for case in cases(name)]
    for cell in counted:
        before = pinned.get(cell.case, Cell(cell.case, ()))
        for now in cell:
            was = before.get(now.strategy)
            if was != now:
                print(f"{cell.case}, {now.strategy}: {was} -> {now}")
    if update:
        store.save(PINS, "work", counted)


if __name__ == "__main__":
    typer.run(main)
