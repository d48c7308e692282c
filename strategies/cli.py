"""The `backward-strategies` command.

Reading results takes the libraries of the extra `bench`; without them `list` and `check` remain.
"""

from __future__ import annotations

import importlib.util

import typer

from strategies.commands.check import check
from strategies.commands.listing import list_strategies

app = typer.Typer(
    help="Backward passes of linear algebra: which strategy to use, on which evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("list")(list_strategies)
app.command()(check)

if all(importlib.util.find_spec(name) for name in ("asv", "jsonschema", "pandas")):
    from strategies.commands import policy
    from strategies.commands.plot import plot
    from strategies.commands.recommend import recommend
    from strategies.commands.regret import regret

    app.command()(recommend)
    app.add_typer(policy.app, name="policy")
    app.command()(regret)
    app.command()(plot)
else:
    app.info.epilog = "More commands with: pip install 'backward-strategies[bench]'"


if __name__ == "__main__":
    app()
