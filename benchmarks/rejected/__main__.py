"""`python -m benchmarks.rejected`: what was left out, against what it would have replaced."""

import torch
import typer

from benchmarks.rejected.cholesky_qr2 import CholeskyQR2
from benchmarks.rejected.newton_schulz import NewtonSchulz
from strategies.cli.common import console
from strategies.measuring import Case, Objective, forward_backward_of, measure
from strategies.measuring.clock import sampler
from strategies.policy.calibration import counted
from strategies.selection.text import table

QR = "triangular_solve"
INVERSE = "explicit_inverse"

COMPARISONS = [
    (CholeskyQR2, QR, "lstsq 512x64"),
    (CholeskyQR2, QR, "lstsq 8192x64"),
    (CholeskyQR2, QR, "lstsq 1000x16x4"),
    (NewtonSchulz, INVERSE, "inv 256x256 cond=1e1"),
    (NewtonSchulz, INVERSE, "inv 256x256 cond=1e4"),
    (NewtonSchulz, INVERSE, "inv 1000x4x4 cond=1e1"),
]


def main() -> None:
    """Prints a row a comparison: forward and backward together, in the same rounds."""
    threads = counted(torch.get_num_threads(), "thread")
    title = f"forward + backward, {threads}, torch {torch.__version__}"
    columns = ("speed-up", "95 % interval")
    shown = table(title, ["case", "left out", "against"], columns)
    both = Objective.FORWARD_BACKWARD
    for kind, name, text in COMPARISONS:
        candidate, case = kind(), Case.parse(text)
        others = {candidate.name: {both: sampler(forward_backward_of(case, candidate))}}
        cell = measure(case, [name], objectives=[both], others=others)
        speedup, low, high = cell.speedup(name, candidate.name, both)
        shown.add_row(text, candidate.name, name, f"{speedup:.2f}×", f"{low:.2f}-{high:.2f}")
    console.print(shown)


if __name__ == "__main__":
    typer.run(main)
