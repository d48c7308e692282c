"""The page `docs/modes.md`: what is green of operation × strategy × mode, and why the rest is not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import torch

from strategies import operations, registry

MODES = (
    "backward",
    "backward of backward",
    "forward",
    "forward over backward",
    "vmap",
    "torch.func",
    "compile",
    "checkpoint",
    "saved-tensor hooks",
    "views",
    "inference",
    *(word for length in (2, 3) for word in map("".join, itertools.product("fr", repeat=length))),
    "jit.trace",
    "make_fx",
    "linearize",
    "functionalize",
)
NUMBERS = ("real", "complex")


class Cell(NamedTuple):
    operation: str
    strategy: str
    mode: str
    numbers: str


def page(outcomes: Mapping[Cell, set[str]]) -> str:
    """The table in Markdown: a section an operation, a row a strategy, a column a mode."""
    reasons: list[str] = []

    def entry(operation: str, strategy: str, mode: str) -> str:
        entries = []
        for numbers in NUMBERS:
            found = outcomes.get(Cell(operation, strategy, mode, numbers), {"not run"})
            if "failed" in found:
                return "✗"
            entries += [f"{numbers}: {why}" for why in sorted(found - {"passed"})]
        reasons.extend(why for why in entries if why not in reasons)
        return " ".join(f"({reasons.index(why) + 1})" for why in entries) or "✓"

    sections = []
    for operation in operations.names():
        rows = [
            f"| `{name}` | {' | '.join(entry(operation, name, mode) for mode in MODES)} |"
            for name in registry.built_in()
        ]
        head = [f"| strategy | {' | '.join(MODES)} |", f"| --- {'| :-: ' * len(MODES)}|"]
        sections.append("\n".join([f"## `{operation}`", "", *head, *rows]))
    notes = [f"({number}) {why}" for number, why in enumerate(reasons, start=1)]
    return "\n\n".join([_INTRODUCTION.format(torch=torch.__version__), *sections, *notes]) + "\n"


_INTRODUCTION = """\
# Modes of differentiation

Written by the test run: `make modes` runs every operation by every strategy in every mode. ✓ stands for
tests that passed with real and with complex matrices, ✗ for one that failed; a number says why there is
none. This is the run of PyTorch {torch}.

- *backward*, *forward*: `gradcheck` of the first derivatives in full mode, of 0×0, 1×1, square, tall and
  wide matrices, single and in batches, an empty one included;
- *backward of backward*, *forward over backward*: `gradgradcheck` of the same;
- *vmap*: equals the batched call, per-sample gradients too;
- *torch.func*: `jacrev`, `jacfwd` and `hessian` agree, `vjp` and `jvp` satisfy the adjoint identity;
- *compile*: `torch.compile` with `fullgraph=True`, by its default backend, gives the eager gradient to
  rounding;
- *checkpoint*: both kinds; *saved-tensor hooks*: all that is kept passes them;
- *views*: non-contiguous and expanded inputs; *inference*: `inference_mode`, and inputs that
  require no gradient;
- *ff*, *fr*, …, *rrr*: derivatives of second and third order by forward (f) and reverse mode (r), the
  outermost first, of a loss that is not linear in the result: by `torch.func.jvp` and `grad`, by `jacfwd`
  and `jacrev`, and, of second order, by `torch.autograd.forward_ad`, each against central differences of
  first derivatives;
- *jit.trace*, *make_fx* (real, fake and symbolic), *linearize*, *functionalize*: what a tracer records
  computes the operation and its gradient at another input."""
