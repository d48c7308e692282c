"""`backward-strategies list`: the strategies and what each one supports."""

from __future__ import annotations

from strategies import registry
from strategies.commands.common import console
from strategies.selection.text import table


def list_strategies() -> None:
    """List the strategies, from simple to elaborate, and what each one is."""
    columns = "strategy", "rank-deficient matrices", "what it does"
    lines = table("", columns, wraps=columns[1:])
    for strategy in map(registry.get, registry.available()):
        handled = "refused" if strategy.requires_full_rank else "handled"
        lines.add_row(strategy.name, handled, strategy.summary)
    console.print(lines)
