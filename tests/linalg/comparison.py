"""Drawn numbers, and the comparisons that many tests make."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck


def drawn(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def of_torch(name):
    """PyTorch's own function."""
    return getattr(torch.linalg, name, None) or getattr(torch, name)


def require_derivatives(call, inputs, *, batched=True, atol=1e-4):
    """Of both orders, in reverse and forward mode along random directions, and mapped."""
    assert gradcheck(
        call, inputs, fast_mode=True, check_forward_ad=True, check_batched_grad=batched
    )
    assert gradgradcheck(call, inputs, fast_mode=True, check_fwd_over_rev=True, atol=atol)


def with_gradients(call, *inputs):
    """The outputs, and by random cotangents the gradients of what requires one."""
    returned = call(*inputs)
    outputs = returned if isinstance(returned, tuple) else (returned,)
    leaves = [each for each in inputs if isinstance(each, Tensor) and each.requires_grad]
    used = [each for each in outputs if each.requires_grad]
    cotangents = [drawn(*each.shape, dtype=each.dtype, seed=i) for i, each in enumerate(used)]
    return [*outputs, *torch.autograd.grad(used, leaves, cotangents)]


def require_alike(ours, theirs, *inputs, **tolerances):
    """Values and gradients of two functions."""
    found, due = (with_gradients(call, *inputs) for call in (ours, theirs))
    torch.testing.assert_close(found, due, **tolerances)


def error_of(function, *arguments, **options):
    """The kind and the words of the error that is raised."""
    with pytest.raises((RuntimeError, TypeError)) as caught:
        function(*arguments, **options)
    return caught.type, str(caught.value)
