"""The one test before an address of a tensor is taken, and the one place where it is.

Compiled code reads numbers where strides say they are. Many tensors have none there: the zeros that
forward mode makes, wrappers of transforms, subclasses without storage, fake and sparse tensors; and those
of conjugate and negative views are others.
"""

import functools
import operator
from typing import Any

import torch
from torch import Tensor

_C: Any = torch._C


def _keys(*names: str) -> int:
    sets = (_C.DispatchKeySet(getattr(_C.DispatchKey, name)).raw_repr() for name in names)
    return functools.reduce(operator.or_, sets)


# What the dispatcher knows of a tensor tells all of it. A wrapper, a pending conjugate, a layout or a mode
# that torch may get is thus refused unless it is named here.
_OTHER = ~_keys(
    *(f"{layer}{device}" for layer in ("", "Autograd", "Autocast") for device in ("CPU", "CUDA")),
    "ADInplaceOrView",
)
_PENDING = _keys("Conjugate", "Negative", "ZeroTensor")


def is_addressable(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor on a CPU or CUDA device are at its address, as its strides say."""
    return not _C._dispatch_keys(tensor).raw_repr() & _OTHER


def is_materializable(tensor: Tensor) -> bool:
    """Whether `materialized` makes it addressable."""
    return not _C._dispatch_keys(tensor).raw_repr() & _OTHER & ~_PENDING


def materialized(tensor: Tensor) -> Tensor:
    """The tensor with a pending conjugate or sign applied, and with memory for zeros that have none.

    ValueError if it has no memory: it is a wrapper, or its storage was freed.
    """
    if not is_addressable(tensor):
        tensor = with_memory(tensor.resolve_conj().resolve_neg())
    address(tensor)
    return tensor


def with_memory(tensor: Tensor) -> Tensor:
    """The tensor, or zeros in memory for one that stands for zeros.

    The tangents that forward mode makes up are such tensors, of which many of torch's own operations, too,
    can do nothing in place.
    """
    return tensor.clone() if tensor._is_zerotensor() else tensor


def address(tensor: Tensor) -> int:
    """Where its numbers are; ValueError for a wrapper, a view that is pending, or freed storage."""
    found = tensor.data_ptr() if is_addressable(tensor) else 0
    if not found and tensor.numel():
        raise ValueError(f"a {type(tensor).__name__} of shape {tuple(tensor.shape)} has no memory")
    return found


def without_entries(tensor: Tensor) -> Tensor:
    """A tensor of that shape, dtype and device with a single entry, which means nothing."""
    return tensor.detach().new_empty(()).expand(tensor.shape)
