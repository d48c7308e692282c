"""Memory for results that are larger than a cache."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["uninitialized"]

_DTYPES = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
}


def uninitialized(like: Tensor, *shape: int) -> Tensor:
    """A tensor of that shape, by rows, with the dtype and device of another.

    On the CPU it is NumPy that allocates, which asks Linux for large pages. Touching 32 MB for the first
    time then takes a quarter of the time, which is what writing a gradient of low rank is made of.

    Example:
        >>> uninitialized(torch.ones(2), 3, 3).shape
        torch.Size([3, 3])
    """
    if like.is_cpu:
        return torch.from_numpy(np.empty(shape, _DTYPES[like.dtype]))
    return torch.empty(shape, dtype=like.dtype, device=like.device)
