"""The `backward-strategies` command."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from strategies.cli import oracle, policy, sweep
from strategies.cli.calibrate import calibrate
from strategies.cli.check import check
from strategies.cli.deferred import call
from strategies.cli.explain import explain
from strategies.cli.list import list_strategies
from strategies.cli.measure import measure_grid
from strategies.cli.plot import plot
from strategies.cli.recommend import recommend
from strategies.cli.record import record
from strategies.cli.regret import regret
from strategies.cli.run import run
from strategies.cli.script import CONTEXT
from strategies.cli.stability import stability
from strategies.cli.warmup import warmup

app = typer.Typer(
    help="Backward passes of linear algebra: which strategy to use, on which evidence.",
    no_args_is_help=True,
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
app.command()(plot)


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
