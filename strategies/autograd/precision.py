"""Full single precision for the products inside a gradient, whatever the caller allows elsewhere."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_NOTHING_TO_DO = contextlib.nullcontext()


def full_precision(
    device: torch.device, dtype: torch.dtype
) -> contextlib.AbstractContextManager[None]:
    """A context in which float32 products are float32: no TF32, no bfloat16 passes, no autocast.

    The flags of the process are as before afterwards. Where they already say so, nothing is done.

    Example:
        >>> with full_precision(torch.device("cpu"), torch.float32):
        ...     torch.ones(1, 2) @ torch.ones(2, 1)
        tensor([[2.]])
    """
    if dtype not in (torch.float32, torch.complex64):
        return _NOTHING_TO_DO
    backends: Any = torch.backends
    products = backends.cuda.matmul if device.type == "cuda" else backends.mkldnn.matmul
    # Not the older `allow_tf32`: torch forbids mixing the two interfaces in one process.
    is_cast = device.type in ("cpu", "cuda") and torch.is_autocast_enabled(device.type)
    if products.fp32_precision in ("ieee", "none"):
        return torch.autocast(device.type, enabled=False) if is_cast else _NOTHING_TO_DO
    return _ieee(products, device)


@contextlib.contextmanager
def _ieee(products: Any, device: torch.device) -> Iterator[None]:
    before = products.fp32_precision
    products.fp32_precision = "ieee"
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        products.fp32_precision = before
