"""Random calls of `strategies.linalg` beside the same calls of `torch.linalg`.

    python -m tests.linalg.fuzz --calls 10000 --seed 0

A call is determined by its seed and number. What differs from torch has to be one of the differences
that docs/differences.md names.
"""

from .calls import Call, draw
from .differences import DIFFERENCES, check

__all__ = ["DIFFERENCES", "Call", "check", "draw"]
