"""`vmap` of a function: a call one level below, of batches that have the mapped dimension first."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from strategies.autograd.rule import Tensors
from strategies.autograd.transforms import (
    Dims,
    at_vmap_level,
    is_mapped,
    is_vmap_innermost,
)

_OF_A_MATRIX = (
    "cholesky",
    "cholesky_ex",
    "cholesky_inverse",
    "det",
    "inv",
    "inv_ex",
    "logdet",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "pinv",
    "slogdet",
)
_OF_VECTORS = "lstsq", "solve", "solve_ex"
_MATRICES = {**dict.fromkeys(_OF_A_MATRIX, 1), **dict.fromkeys((*_OF_VECTORS, "cholesky_solve"), 2)}
"""By function: how many matrices it takes, of which batches are broadcast.

Others are left to what `vmap` makes of their parts.
"""


def vmapped(
    function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]
) -> Any | None:
    """The outputs, if the innermost transform is a `vmap` whose samples are a batch for the function."""
    count = _MATRICES.get(function.__name__, 0)
    matrices, rest = list(arguments[:count]), arguments[count:]
    if not (is_vmap_innermost() and count and len(matrices) == count):
        return None
    if not all(map(_is_tensor, matrices)):
        return None
    name, first, last = function.__name__, matrices[0], matrices[-1]
    is_vector = name in _OF_VECTORS and last.shape == first.shape[:-1]
    if is_vector:
        matrices[-1] = last.unsqueeze(-1)
    tolerances = {key: each for key, each in options.items() if isinstance(each, Tensor)}
    is_usual = not (any(map(_is_tensor, rest)) or (tolerances and name != "pinv"))
    if not is_usual or {each.ndim for each in matrices} != {max(first.ndim, 2)}:
        return None
    if name == "lstsq" and not is_mapped(first):  # whose broadcast batches are factored each
        return None
    if tolerances:  # which are broadcast with the batch
        batch = max(first.ndim - 2, *(each.ndim for each in tolerances.values()))
        matrices = [each[(None,) * (batch + 2 - each.ndim)] for each in matrices]
        tolerances = {key: each[(None,) * (batch - each.ndim)] for key, each in tolerances.items()}
    found: Any = None

    def compute(*batches: Tensor) -> Tensors:
        nonlocal found
        of_batches = dict(zip(tolerances, batches[count:], strict=True))
        found = function(*batches[:count], *rest, **(options | of_batches))
        return (found,) if isinstance(found, Tensor) else tuple(found)

    outputs = at_vmap_level(compute, [*matrices, *tolerances.values()], _over_first_dimension)
    if is_vector:
        outputs = outputs[0].squeeze(-1), *outputs[1:]
    return outputs[0] if isinstance(found, Tensor) else found._make(outputs)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _over_first_dimension(
    compute: Callable[..., Tensors], size: int, tensors: Sequence[Tensor], dims: Dims
) -> tuple[Sequence[Tensor], Dims]:
    """What is not mapped is one for all samples, and so is what is computed of that alone."""
    moved = [
        each.unsqueeze(0) if dim is None else each.movedim(dim, 0)
        for each, dim in zip(tensors, dims, strict=True)
    ]
    outputs = compute(*moved)
    are_mapped = [each.shape[0] == size for each in outputs]
    found = [
        each if is_one else each.squeeze(0)
        for each, is_one in zip(outputs, are_mapped, strict=True)
    ]
    return found, [0 if is_one else None for is_one in are_mapped]
