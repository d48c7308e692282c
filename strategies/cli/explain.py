"""`backward-strategies explain`: what "auto" uses for a call, and on what evidence."""

from __future__ import annotations

from typing import Annotated

import typer

from strategies.cli.common import console, reports_errors
from strategies.explanation import explain_key
from strategies.measuring.case import Case
from strategies.selection.policies import policy_key


@reports_errors
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
