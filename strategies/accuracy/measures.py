"""How an error is judged: as a multiple of what rounding explains.

Rounding the inputs alone moves a gradient by about amplification · u, relative to its norm, where u
is the unit roundoff of the tested dtype.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from strategies import operations
from strategies.formulas.amplification import condition_number, unit_roundoff

PASS_BELOW = 30.0
"""The error ratio from which LAPACK's test programs report a failure (LAPACK Working Note 41)."""


def amplification(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    rank: int | None = None,
) -> Tensor:
    """By how much a gradient magnifies rounding errors of size u, to first order, (...).

    It takes what `strategies.accuracy.gradient` does; the estimates are those of
    `strategies.formulas.amplification`.
    """
    estimate = operations.get(operation).amplification
    return estimate(inputs, cotangents, rank) if estimate else condition_number(inputs[0], rank)


def error_ratio(error: Tensor | float, amplification: Tensor | float, dtype: torch.dtype) -> float:
    """The largest error / (amplification · u), infinite for NaN: below `PASS_BELOW` is good."""
    ratios = torch.as_tensor(error, dtype=torch.float64) / (
        torch.as_tensor(amplification, dtype=torch.float64) * unit_roundoff(dtype)
    )
    return float(ratios.nan_to_num(nan=math.inf, posinf=math.inf).max()) if ratios.numel() else 0.0
