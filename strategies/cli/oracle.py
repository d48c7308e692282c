"""`backward-strategies oracle`: a set of cases with certified derivatives, and libraries graded by it."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from strategies.cli.common import Seed, console, file_option, notes, writable
from strategies.cli.progress import progress
from strategies.files.documents import json_text
from strategies.files.writing import write_text
from strategies.oracle.asking import CORE, ask
from strategies.oracle.grader import REFUSES, RIGHT, UNSTABLE, WRONG
from strategies.oracle.report import Report, report
from strategies.selection.text import table

app = typer.Typer(
    help="Cases with certified derivatives, and libraries graded by them.", no_args_is_help=True
)

_STYLES = {RIGHT: "green", UNSTABLE: "yellow", WRONG: "bold red", REFUSES: "dim"}


@app.command()
def write(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="As JSON Lines; a name in .gz packs it.", callback=writable
        ),
    ],
    cases: Annotated[int, typer.Option(min=1, help="Of each operation and kind.")] = 9,
    seed: Seed = 0,
) -> None:
    """Write a set: inputs and directions, with certified value, VJP, JVP and Hessian-vector product.

    The same numbers make the same bytes. By default it is the set that comes with the package.
    """
    from strategies import operations  # python-flint is needed to certify, not to grade
    from strategies.oracle import records
    from strategies.oracle.draws import KINDS

    drawn: list[records.CaseRecord] = []
    with progress(cases * len(KINDS) * len(operations.names()), notes) as begin:
        for record in records.records(cases, seed):
            begin(record.id if record else "nothing to judge")
            drawn += [record] if record else []
    write_text(out, records.text([records.Header(seed=seed, cases=cases), *drawn]))
    console.print(f"{out}: {len(drawn)} cases")


@app.command()
def grade(
    library: Annotated[
        str, typer.Argument(metavar="LIBRARY", help="As pytorch or jax, or the path of an adapter.")
    ],
    of: Annotated[Path, file_option("By default the core set.", "--set")] = CORE,
    python: Annotated[
        str, typer.Option(metavar="PATH", help="An interpreter that has the library and NumPy.")
    ] = sys.executable,
    out: Annotated[
        Path | None,
        file_option("Where to keep the report, as JSON or .json.gz.", callback=writable),
    ] = None,
) -> None:
    """Ask a library for the derivatives of a set, and judge its answers by their stability ratios.

    The exit code is 1 if an answer is unstable or wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.jsonl"
        ask(library, of, answers, python=python)
        found = report(of, answers)
    console.print(_table(found))
    if out is not None:
        write_text(out, json_text(found))
    if found.failed:
        raise typer.Exit(1)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a case."""
    from strategies.oracle import records

    console.print(json_text(records.schema()), end="", soft_wrap=True)


def _table(found: Report) -> Table:
    title = f"{found.library} by {found.cases} cases of each operation and kind, seed {found.seed}"
    columns = "right", "unstable", "wrong", "refused", "missing", "worst"
    cases = "worst in", "fails first in"
    lines = table(title, ("operation", "derivative"), columns)
    for column in cases:
        lines.add_column(column, overflow="fold")
    for entry in found.entries:
        ratio = "" if entry.worst is None else "∞" if entry.worst >= 1e99 else f"{entry.worst:.1g}"
        lines.add_row(
            entry.operation,
            Text(entry.quantity, style=_STYLES.get(entry.verdict, "dim")),
            *(str(count or "") for count in entry.counts.values()),
            ratio,
            *((case or "").partition("/")[2] for case in (entry.worst_case, entry.smallest)),
        )
    return lines
