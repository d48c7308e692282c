"""The forms in which strategies hold an inverse, shared between them."""

from strategies.factors.dense import Dense, DenseInverse
from strategies.factors.lu_factors import LUFactors
from strategies.factors.orthogonal import Orthogonal
from strategies.factors.packed_lu import PackedLU
from strategies.factors.reflected import Reflected
from strategies.factors.triangular import Triangular

__all__ = [
    "Dense",
    "DenseInverse",
    "LUFactors",
    "Orthogonal",
    "PackedLU",
    "Reflected",
    "Triangular",
]
