"""`backward-strategies plot`: the figures, from a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors


@reports_errors
def plot(
    results: Results = DEFAULT_RESULTS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figures go.")] = Path("out"),
) -> None:
    """Draw all figures that the results allow; needs a checkout as the current folder."""
    if not Path("plots/__main__.py").exists():
        raise ValueError("figures are drawn from a checkout of the project: go to its root first")
    command = [sys.executable, "-m", "plots", "--results", str(results), "--out", str(out)]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
