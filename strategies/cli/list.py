"""`backward-strategies list`: the strategies and what each one supports."""

from __future__ import annotations

import warnings

from strategies import registry
from strategies.cli.common import console, notes
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
