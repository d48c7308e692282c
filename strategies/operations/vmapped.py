"""`vmap` of a function: a call one level below, of batches that have the mapped dimension first."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.tracing import is_batched, is_vmap_innermost
from strategies.autograd.transforms import over_samples

_OF_VECTORS = "lstsq", "solve", "solve_ex"
_MATRICES = {
    **dict.fromkeys((*_OF_VECTORS, "cholesky_solve", "solve_triangular"), 2),
    "lu_solve": 3,
}
"""By function: how many it takes, pivots being one, of which batches are broadcast; others take one."""


def vmapped(
    function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]
) -> Any | None:
    """The outputs, if the innermost transform is a `vmap` whose samples are a batch for the function."""
    name = function.__name__
    count = _MATRICES.get(name, 1)
    tensors, rest = list(arguments[:count]), arguments[count:]
    if name == "eig" or len(tensors) < count or not is_vmap_innermost():
        return None
    if not all(map(_is_tensor, tensors)) or any(map(_is_tensor, rest)):
        return None
    first, last = tensors[0], tensors[-1]
    is_vector = name in _OF_VECTORS and last.shape == first.shape[:-1]
    if is_vector:
        tensors[-1] = last = last.unsqueeze(-1)
    tolerances = {
        key: each
        for key, each in options.items()
        if isinstance(each, Tensor) and (each.ndim or is_batched(each))
    }
    if not 2 <= first.ndim == last.ndim or (tolerances and name != "pinv"):
        return None
    if name == "qr" and (rest or options):  # of modes which PyTorch alone computes
        return None
    if name == "lu_solve" and tensors[1].ndim != first.ndim - 1:
        return None
    if tolerances:  # which are broadcast with the batch
        batch = max(first.ndim - 2, *(each.ndim for each in tolerances.values()))
        tensors = [first[(None,) * (batch + 2 - first.ndim)]]
        tensors += [each[(None,) * (batch - each.ndim)] for each in tolerances.values()]

    def compute(*batches: Tensor) -> Any:
        of_batches = dict(zip(tolerances, batches[count:], strict=True))
        return function(*batches[:count], *rest, **(options | of_batches))

    def of_factors(LU: Tensor, pivots: Tensor, B: Tensor) -> Any:
        # Where samples have one of them in common: PyTorch broadcasts neither with the other.
        if LU.shape[:-1] != pivots.shape:
            batch = torch.broadcast_shapes(LU.shape[:-1], pivots.shape)
            LU, pivots = LU.expand(*batch, LU.shape[-1]), pivots.expand(batch)
        return compute(LU, pivots, B)

    is_as_it_is = not (tolerances or rest or options)
    over_batch = of_factors if name == "lu_solve" else function if is_as_it_is else compute
    found = over_samples(over_batch, tensors)
    if not is_vector:
        return found
    if isinstance(found, Tensor):
        return found.squeeze(-1)
    return found._make((found[0].squeeze(-1), *found[1:]))


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)
