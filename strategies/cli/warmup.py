"""`backward-strategies warmup`: builds the fast path in C++ ahead of calls."""

import strategies
from strategies.cli.common import console, notes, reports_errors
from strategies.kernels import extension
from strategies.kernels.cpu import library


@reports_errors
def warmup() -> None:
    """Build the fast path in C++ for the PyTorch at hand, if it is not there."""
    build_fast_path()
    if (reason := library.missing()) != "":
        console.print(f"there are no compiled kernels, {reason}")


def build_fast_path() -> None:
    """`strategies.warmup`, and say so while it takes time."""
    if extension.is_missing():
        with notes.status("building the fast path for this version of PyTorch: half a minute"):
            strategies.warmup()
