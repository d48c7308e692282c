"""`torch.linalg`'s operations with a choice of how the inverse in their backward is applied.

Names, signatures and return fields are those of `torch.linalg`, plus `strategy=`: a name from
`strategies.available()`, a `Strategy` of your own, or "auto", the measured default.
"""

from strategies.linalg._det import SlogdetResult, det, slogdet
from strategies.linalg._inv import inv
from strategies.linalg._lstsq import LstsqResult, lstsq
from strategies.linalg._lu import (
    LUFactorExResult,
    LUFactorResult,
    LUResult,
    lu,
    lu_factor,
    lu_factor_ex,
)
from strategies.linalg._pinv import pinv
from strategies.linalg._solve import solve

__all__ = [
    "LUFactorExResult",
    "LUFactorResult",
    "LUResult",
    "LstsqResult",
    "SlogdetResult",
    "det",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "pinv",
    "slogdet",
    "solve",
]
