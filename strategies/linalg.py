"""`torch.linalg`'s operations with a choice of how the inverse in their backward is applied.

Names, signatures and return fields are those of `torch.linalg`, plus `strategy=`: a name from
`strategies.available()`, a `Strategy` of your own, or "auto", the measured default.
"""

from strategies.operations.det import SlogdetResult, det, slogdet
from strategies.operations.inv import inv
from strategies.operations.lstsq import LstsqResult, lstsq
from strategies.operations.lu import (
    LUFactorExResult,
    LUFactorResult,
    LUResult,
    lu,
    lu_factor,
    lu_factor_ex,
)
from strategies.operations.pinv import pinv
from strategies.operations.solve import solve

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
