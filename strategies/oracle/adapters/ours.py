"""This package, each operation by the strategy that "auto" chooses."""

import torch

from strategies import linalg
from strategies.oracle.adapters import pytorch


def version() -> str:
    return f"strategies, torch {torch.__version__}"


globals().update(
    pytorch.derivatives(pytorch.functions(linalg, linalg.cholesky_solve, linalg.cholesky_inverse))
)
