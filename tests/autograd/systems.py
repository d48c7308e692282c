"""Matrices, right-hand sides and losses for transforms of torch.func."""

import torch
from torch import Tensor


def system(*batch: int) -> tuple[Tensor, Tensor]:
    """Matrices and right-hand sides."""
    A = torch.randn(*batch, 3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    return A, torch.randn(*batch, 3, 2, dtype=torch.float64)


def loss_of(function):
    return lambda *inputs: function(*inputs).sin().square().sum()
