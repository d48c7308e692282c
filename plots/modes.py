"""`python -m plots.modes PAGE`: what is green of operation × strategy × mode, and why the rest is not.

`make modes` runs the tests marked `mode`, and keeps what they found in a file of this module.
"""

import itertools
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
import typer

from plots import marked
from strategies import operations, registry
from strategies.cli.common import reports_errors
from strategies.files.documents import Document

KEPT = Path("docs/data/modes.json.gz")

MODES = (
    *("backward", "backward of backward", "forward", "forward over backward", "vmap"),
    *("torch.func", "compile", "checkpoint", "saved-tensor hooks", "views", "inference"),
    *(word for length in (2, 3) for word in map("".join, itertools.product("fr", repeat=length))),
    *("jit.trace", "make_fx", "linearize", "functionalize"),
)
NUMBERS = ("real", "complex")


class Cell(NamedTuple):
    """What some tests are of."""

    operation: str
    strategy: str
    mode: str
    numbers: str


Outcomes = Mapping[Cell, Set[str]]
"""Of each cell "passed", "failed", and why tests were skipped."""


class _Found(Document, frozen=True, kw_only=True):
    format: str = "backward-strategies modes"
    version: int = 1
    torch: str
    outcomes: list[tuple[Cell, list[str]]]


def save(outcomes: Outcomes, path: Path) -> None:
    """Writes a file; UnusableFileError if it cannot be written."""
    found = [(cell, sorted(names)) for cell, names in sorted(outcomes.items())]
    _Found(torch=str(torch.__version__), outcomes=found).save(path)


def load(path: Path) -> tuple[str, Outcomes]:
    """The release of torch, and what was found; UnusableFileError if the file cannot be read."""
    found = _Found.read(path)
    return found.torch, {cell: set(names) for cell, names in found.outcomes}


@reports_errors
def main(
    page: marked.Page,
    kept: Annotated[Path, typer.Option(metavar="FILE", help="What `make modes` kept.")] = KEPT,
) -> None:
    """Put the tables between the markers of a page."""
    release, outcomes = load(kept)
    told = f"This is the run of PyTorch {release}."
    marked.fill(page, {"modes": f"{told}\n\n{tables(outcomes)}"})


def tables(outcomes: Outcomes) -> str:
    """A section an operation, a row a strategy, a column a mode; below all, the reasons by number."""
    reasons: list[str] = []

    def entry(operation: str, strategy: str, mode: str) -> str:
        entries = []
        for numbers in NUMBERS:
            found = outcomes.get(Cell(operation, strategy, mode, numbers), {"not run"})
            if "failed" in found:
                return "✗"
            entries += [f"{numbers}: {why}" for why in sorted(found - {"passed"})]
        reasons.extend(why for why in entries if why not in reasons)
        return " ".join(f"({reasons.index(why) + 1})" for why in entries) or "✓"

    def section(operation: str, names: Iterable[str]) -> str:
        rows = [
            f"| `{name}` | {' | '.join(entry(operation, name, mode) for mode in MODES)} |"
            for name in names
        ]
        head = [f"| strategy | {' | '.join(MODES)} |", f"| --- {'| :-: ' * len(MODES)}|"]
        return "\n".join([f"## `{operation}`", "", *head, *rows])

    sections = [section(name, registry.built_in()) for name in operations.names()]
    notes = [f"({number}) {why}" for number, why in enumerate(reasons, start=1)]
    return "\n\n".join([*sections, *notes])


if __name__ == "__main__":
    typer.run(main)
