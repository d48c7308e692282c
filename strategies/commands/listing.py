"""`backward-strategies list`: the strategies and what each one supports."""

from __future__ import annotations

from rich.table import Table

import strategies
from strategies.commands.common import console


def list_strategies() -> None:
    """List the strategies, from simple to elaborate, and what each one is."""
    table = Table(header_style="bold")
    table.add_column("strategy", no_wrap=True)
    table.add_column("rank-deficient matrices")
    table.add_column("what it does")
    for name in strategies.available():
        strategy = strategies.get(name)
        handled = "refused" if strategy.requires_full_rank else "handled"
        table.add_row(name, handled, strategy.summary)
    console.print(table)
