"""`python -m benchmarks.rejected`: what was left out, against what it would have replaced."""

from __future__ import annotations

import torch
from rich.console import Console
from rich.table import Table

import strategies
from benchmarks.rejected.cholesky_qr2 import CholeskyQR2
from benchmarks.rejected.newton_schulz import NewtonSchulz
from strategies.measuring import Case, forward_backward_of, paired

QR = "triangular_solve"
INVERSE = "explicit_inverse"

COMPARISONS = [
    (CholeskyQR2(), QR, Case("lstsq", (512, 64))),
    (CholeskyQR2(), QR, Case("lstsq", (8192, 64))),
    (CholeskyQR2(), QR, Case("lstsq", (16, 4), 1000)),
    (NewtonSchulz(), INVERSE, Case("inv", (256, 256), log10_cond=1)),
    (NewtonSchulz(), INVERSE, Case("inv", (256, 256), log10_cond=4)),
    (NewtonSchulz(), INVERSE, Case("inv", (4, 4), 1000, log10_cond=1)),
]


def main() -> None:
    """Prints a row a comparison: forward and backward together, timed in turn."""
    title = f"forward + backward, {torch.get_num_threads()} threads, torch {torch.__version__}"
    table = Table(title=title)
    for name in ("case", "left out", "against", "speed-up", "95 % interval"):
        table.add_column(name, no_wrap=True)
    for candidate, name, case in COMPARISONS:
        incumbent = forward_backward_of(case, strategies.get(name))
        timing = paired(incumbent, forward_backward_of(case, candidate))
        interval = f"{timing.low:.2f}-{timing.high:.2f}"
        table.add_row(case.label, candidate.name, name, f"{timing.ratio:.2f}×", interval)
    Console().print(table)


if __name__ == "__main__":
    main()
