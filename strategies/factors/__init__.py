"""The forms in which strategies hold an inverse, shared between them."""

from strategies.factors.dense import Dense
from strategies.factors.householder import Reflected
from strategies.factors.nonsingular import DenseInverse, LUFactors, Triangular
from strategies.factors.orthogonal import Orthogonal
from strategies.factors.pivots import PackedLU

__all__ = [
    "Dense",
    "DenseInverse",
    "LUFactors",
    "Orthogonal",
    "PackedLU",
    "Reflected",
    "Triangular",
]
