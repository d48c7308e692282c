"""Sums at small cost in forward mode.

There PyTorch adds, multiplies or divides a tensor with a tangent and one without, a number included, by way
of a kernel in Python that only finds the shape: a hundred times the cost of a small sum.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def add(one: Tensor, other: Tensor) -> Tensor:
    """The sum of two tensors, of which one may be a constant.

    Example:
        >>> add(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
        tensor([4., 5.])
    """
    if forward_ad._current_level < 0:
        return one + other
    both = torch.broadcast_tensors(one, other)  # type: ignore[no-untyped-call]  # torch's stubs
    return torch.stack(both).sum(0)
