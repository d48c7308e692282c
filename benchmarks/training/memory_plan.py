"""What the largest inverses of the programs would take: bytes by a model that is checked.

Forward and backward of an operation on square matrices hold, above their inputs, a number of arrays of
the inputs' size, and next to nothing else. That number belongs to the algorithm and not to the size. It is
counted at two smaller sizes, by the strategy that "auto" tries at the full one, and has to be equal there.
What BLAS and compiled loops take for themselves is not counted: of the loops, two matrices a thread.
"""

import math
from dataclasses import dataclass, replace

from strategies.autograd.explanation import explain_key
from strategies.measuring import Case, forward_backward_of, peak_bytes
from strategies.policy import BASELINE
from strategies.selection.policies import policy_key

LARGEST = {"inv 3844x3844 complex128": (961, 1281), "inv 8x1600x1600 float32": (533, 800)}
"""RCWA with 31×31 orders and RoMa's decoder, and the sizes where arrays are counted."""

_TOLERANCE = 0.02


@dataclass(frozen=True)
class Plan:
    """What a case would take, its matrices so many bytes, by PyTorch and by what "auto" tries first.

    Attributes:
        torch: arrays of that size that PyTorch holds at its peak, the gradient among them.
        auto: that the strategy holds.
        checked: the rows of the matrices where they were counted.
    """

    case: Case
    matrices: int
    strategy: str
    torch: float
    auto: float
    checked: tuple[int, ...]


def plans() -> list[Plan]:
    """Of the largest cases."""
    return [plan(Case.parse(text), sizes) for text, sizes in LARGEST.items()]


def plan(case: Case, sizes: tuple[int, ...]) -> Plan:
    """What a case of square matrices would take; ArithmeticError if smaller sizes differ in arrays."""
    strategy = explain_key(policy_key(case)).tried[0]
    smaller = [replace(case, shape=(n, n)) for n in sizes]
    torch, auto = (_arrays(smaller, name) for name in (BASELINE, strategy))
    return Plan(case, _bytes(case), strategy, torch, auto, sizes)


def _arrays(cases: list[Case], strategy: str) -> float:
    counted = [peak_bytes(forward_backward_of(case, strategy)) / _bytes(case) for case in cases]
    if max(counted) > (1 + _TOLERANCE) * min(counted):
        raise ArithmeticError(f"{strategy} holds {counted} arrays in {[*map(str, cases)]}")
    return counted[-1]


def _bytes(case: Case) -> int:
    return max(case.batch, 1) * math.prod(case.shape) * case.dtype.itemsize
