"""Backward passes of linear algebra by interchangeable strategies.

    from strategies import linalg
    X = linalg.lstsq(A, B, strategy="triangular_solve").solution

`available()` names the strategies, `get(name)` is one of them, `Strategy` is what a new one derives
from, and `linalg` holds the operations of `torch.linalg` that take one.
"""

from strategies import linalg
from strategies.errors import StrategyNotFoundError, UnsupportedError
from strategies.interface import Strategy
from strategies.policy import use
from strategies.pseudo_inverse import PseudoInverse, Structure
from strategies.registry import available, get

__all__ = [
    "PseudoInverse",
    "Strategy",
    "StrategyNotFoundError",
    "Structure",
    "UnsupportedError",
    "available",
    "get",
    "linalg",
    "use",
]
