"""The `backward-strategies` command, with its shortest subcommands."""

import importlib.metadata
import warnings
from typing import Annotated

import typer

from strategies import registry
from strategies.autograd.explanation import explain_key
from strategies.cli import common, oracle, policy, sweep
from strategies.cli.calibrate import calibrate
from strategies.cli.check import check
from strategies.cli.common import console, notes
from strategies.cli.measure import measure_grid
from strategies.cli.recommend import recommend
from strategies.cli.regret import regret
from strategies.cli.run import CONTEXT, call, record, run
from strategies.cli.stability import stability
from strategies.kernels import extension
from strategies.kernels.cpu import library
from strategies.measuring.case import Case
from strategies.selection.policies import policy_key
from strategies.selection.text import table


def list_strategies() -> None:
    """List the strategies, from simple to elaborate, and what each one is.

    A plug-in that cannot be used is left out, and a line on standard error says why.
    """
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        names = registry.available()
    columns = "strategy", "rank-deficient matrices", "what it does"
    lines = table("", columns, wraps=columns[1:])
    for strategy in map(registry.get, names):
        handled = "refused" if strategy.requires_full_rank else "handled"
        lines.add_row(strategy.name, handled, " ".join(strategy.summary.split()))
    console.print(lines)
    for warning in left_out:
        notes.print(str(warning.message), soft_wrap=True)


def warmup() -> None:
    """Build the fast path in C++ for the PyTorch at hand, if it is not there.

    The exit code is 1 if it is not there then.
    """
    common.build_fast_path()
    module = None if extension.is_missing() else extension.load()
    if module is not None:
        console.print(f"the fast path is in {module.__file__}", soft_wrap=True)
    if (reason := library.missing()) != "":
        console.print(f"there are no compiled kernels, {reason}")
    if module is None or reason:
        raise typer.Exit(1)


def explain(
    case: Annotated[
        list[str], typer.Argument(metavar="CASE", help="As: lstsq 1000x16x4 k=2 float32")
    ],
) -> None:
    """Say what strategy="auto" uses for a call, by which measurements, and how stable that is."""
    asked = Case.parse(" ".join(case))
    # In its own name, not in that of the operation whose measurements answer.
    own = (asked.operation, *policy_key(asked)[1:])
    console.print(str(explain_key(own)), soft_wrap=True)


app = typer.Typer(
    cls=common.ReportingGroup,
    help="Backward passes of linear algebra: which strategy to use, on which evidence.",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # a paragraph of a docstring is one, however its lines are broken
    pretty_exceptions_enable=False,
)
app.command("list")(list_strategies)
app.command()(check)
app.command()(warmup)
app.command("measure")(measure_grid)
app.command(context_settings=CONTEXT)(run)
app.command(context_settings=CONTEXT)(record)
app.command()(calibrate)
app.command()(stability)
app.command()(recommend)
app.command()(explain)
app.add_typer(oracle.app, name="oracle")
app.add_typer(policy.app, name="policy")
app.add_typer(sweep.app, name="sweep")
app.command()(regret)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(importlib.metadata.version("backward-strategies"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command that `sys.argv` names."""
    call(app, "backward-strategies")
