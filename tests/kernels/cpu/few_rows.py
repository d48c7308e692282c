"""Batches of matrices of few rows, and how far kernels are from PyTorch in double precision."""

import torch
from comparison import drawn

from strategies.testing.problems import doubled


def pivoted(n, dtype, count=40):
    """Matrices that are pivoted in many orders."""
    return torch.randn(count, n, n, dtype=dtype) + 2 * torch.eye(n)[:, torch.randperm(n)]


def differences(ours, theirs, *inputs, scale=1.0, part=lambda gradient: gradient):
    """Of outputs and gradients, over the norms of PyTorch's; a part of the last gradient may count."""
    inputs = [each.requires_grad_() for each in inputs]
    result, expected = ours(*inputs), theirs(*map(doubled, inputs))
    G = drawn(*result.shape, dtype=result.dtype, seed=1) * scale
    *found, last = result, *torch.autograd.grad(result, inputs, G)
    *due, due_last = expected, *torch.autograd.grad(expected, inputs, doubled(G))
    pairs = zip([*found, part(last)], [*due, part(due_last)], strict=True)
    return [((x - y).norm() / y.norm()).item() for x, y in pairs]
