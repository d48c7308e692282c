"""The `backward-strategies` command."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from strategies.commands import policy, sweep
from strategies.commands.calibrate import calibrate
from strategies.commands.check import check
from strategies.commands.deferred import call
from strategies.commands.explain import explain
from strategies.commands.list import list_strategies
from strategies.commands.measure import measure_grid
from strategies.commands.plot import plot
from strategies.commands.recommend import recommend
from strategies.commands.record import record
from strategies.commands.regret import regret
from strategies.commands.run import run
from strategies.commands.script import CONTEXT
from strategies.commands.stability import stability
from strategies.commands.warmup import warmup

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
