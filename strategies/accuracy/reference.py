"""Certified exact gradients: what a computed gradient is compared with.

Inputs are taken as the exact binary numbers they are; the formulas run in ball arithmetic at a
precision that is doubled until the proven radius is 2⁻²⁰ of the tested dtype's unit roundoff.
Needs python-flint, the extra ``backward-strategies[accuracy]``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strategies.accuracy.cache import Cache, fingerprint
from strategies.accuracy.certified import Certified, ScaledPair

if TYPE_CHECKING:
    from strategies.accuracy.evaluation import Problem

OPERATIONS = ("lu_factor", "lu", "pinv", "lstsq", "solve", "inv", "det", "slogdet")
"""The operations that have a reference."""

_WORTH_CACHING = 1024
"""Entries of the first input from which computing takes longer than reading a file."""


def gradient(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    rank: int | None = None,
    pivots: Tensor | None = None,
) -> Certified:
    """Compute the exact gradient of an operation at exactly these inputs.

    Complex gradients follow PyTorch's convention. Gradients at deficient rank are those along
    perturbations that keep the rank.

    Args:
        operation: a name of `OPERATIONS`, with torch.linalg's meaning.
        inputs: (A,), or (A, B) for lstsq and solve; A is (..., m, n), B is (..., m, k) or
            (..., m). float32, float64, complex64 or complex128, one dtype, any device.
        cotangents: one for each differentiable output. lu_factor: of the packed m×n factors;
            lu: of L and of U; det: one; slogdet: of logabsdet, or of sign and logabsdet.
        rank: the exact rank of every matrix of the batch, for lu_factor, lu, pinv, lstsq and
            det; None means full rank. It is checked, not trusted.
        pivots: lu_factor and lu only: the pivots torch.linalg.lu_factor returned in the
            computation that is tested. By default lu_factor is called here. With `rank`, only
            the first `rank` pivots count and the other rows keep their places.

    Returns:
        The gradients of the inputs with their certificate.

    Raises:
        ImportError: python-flint is not installed.
        ValueError: an unknown operation, shapes or dtypes that do not fit, numbers that are
            not finite, or a rank other than the declared one.
        ArithmeticError: the precision limit was reached.

    Example:
        >>> import torch
        >>> A = torch.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
        >>> exact = gradient("pinv", (A,), (torch.ones(2, 3),))
        >>> exact.gradients[0]
        tensor([[-0.1111, -0.0833],
                [-0.0833, -0.0625],
                [ 0.1111,  0.0625]], dtype=torch.float64)
        >>> exact.radius < 2**-44
        True
    """
    if operation not in OPERATIONS:
        raise ValueError(f"unknown operation {operation!r}; known are {', '.join(OPERATIONS)}")
    evaluation = _evaluation()
    _check(operation, inputs, cotangents, rank)
    matrix = inputs[0]
    if operation == "lu":
        lower, upper = cotangents
        operation, cotangents = "lu_factor", (_packed(lower, upper),)
    elif operation == "slogdet" and len(cotangents) == 1:
        cotangents = (torch.zeros_like(cotangents[0]), *cotangents)
    if operation != "lu_factor":
        if pivots is not None:
            raise ValueError(f"{operation} has no pivots")
    elif pivots is None:
        pivots = torch.linalg.lu_factor_ex(matrix.detach())[1]
    return _reference(evaluation, operation, inputs, cotangents, rank, pivots)


def lu_gradient_at_factors(
    LU: Tensor, pivots: Tensor, cotangent: Tensor, *, rank: int | None = None
) -> Certified:
    """Evaluate the gradient of lu_factor exactly at factors that were stored.

    The stored factors are the exact factors of their own product, so this is the exact gradient
    there. Its distance from a computed gradient is what the backward pass itself added, free
    of the error of the factorization.

    Args:
        LU: (..., m, n) packed factors as torch.linalg.lu_factor returns them.
        pivots: (..., min(m, n)) its pivots.
        cotangent: (..., m, n) of the packed factors.
        rank: the number of leading columns of L and rows of U that count; None is all.

    Returns:
        The gradient of A, one part, with its certificate.

    Raises:
        ImportError: python-flint is not installed.
        ValueError: shapes that do not fit, numbers that are not finite, or a singular U.

    Example:
        >>> import torch
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> exact = lu_gradient_at_factors(LU, pivots, torch.ones(2, 2))
        >>> exact.gradients[0].shape
        torch.Size([2, 2])
    """
    evaluation = _evaluation()
    _check("lu_factor", (LU,), (cotangent,), rank)
    return _reference(evaluation, "lu_at_factors", (LU,), (cotangent,), rank, pivots)


def _evaluation() -> ModuleType:
    try:
        return importlib.import_module("strategies.accuracy.evaluation")
    except ModuleNotFoundError as error:
        if error.name != "flint":
            raise
        raise ImportError(
            "exact gradients need python-flint: pip install 'backward-strategies[accuracy]'"
        ) from error


def _reference(
    evaluation: ModuleType,
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    rank: int | None,
    pivots: Tensor | None,
) -> Certified:
    m, n = inputs[0].shape[-2:]
    rank = min(m, n) if rank is None else rank
    arrays = [_plain(tensor) for tensor in (*inputs, *cotangents)]
    order = None
    if pivots is not None:
        order = _row_order(pivots, inputs[0].shape, rank)
        if operation == "lu_factor":
            arrays[0] = np.take_along_axis(arrays[0], order[..., None], -2)
    cache = Cache() if inputs[0].numel() >= _WORTH_CACHING else None
    key = fingerprint(operation, rank, arrays if order is None else [*arrays, order])
    stored = cache.load(key) if cache else None
    if stored is not None:
        return stored
    batch = inputs[0].shape[:-2]
    problems: list[Problem] = [
        evaluation.Problem(
            operation,
            tuple(array[index] for array in arrays[: len(inputs)]),
            tuple(array[index] for array in arrays[len(inputs) :]),
            rank,
            None if order is None else order[index],
        )
        for index in np.ndindex(*batch)
    ]
    results = [evaluation.certify(problem) for problem in problems]
    parts = tuple(
        _stacked([result.parts[i] for result in results], tuple(t.shape), batch)
        for i, t in enumerate(inputs)
    )
    certified = Certified(
        parts,
        max((result.radius for result in results), default=0.0),
        max((result.bits for result in results), default=0),
    )
    if cache:
        cache.store(key, certified)
    return certified


def _check(
    operation: str, inputs: Sequence[Tensor], cotangents: Sequence[Tensor], rank: int | None
) -> None:
    """Refuse what does not fit, naming both values."""
    expected = 2 if operation in ("lstsq", "solve") else 1
    if len(inputs) != expected:
        raise ValueError(f"{operation} has {expected} inputs, got {len(inputs)}")
    matrix = inputs[0]
    if matrix.ndim < 2:
        raise ValueError(f"A must have at least two dimensions, got shape {tuple(matrix.shape)}")
    m, n = matrix.shape[-2:]
    if operation in ("solve", "inv", "det", "slogdet") and m != n:
        raise ValueError(f"{operation} needs square matrices, got {m}×{n}")
    least = min(m, n) if operation in ("solve", "inv", "slogdet") else 0
    if rank is not None and not least <= rank <= min(m, n):
        raise ValueError(f"{operation} of {m}×{n} needs {least} ≤ rank ≤ {min(m, n)}, got {rank}")
    batch = tuple(matrix.shape[:-2])
    if expected == 2 and tuple(inputs[1].shape[: matrix.ndim - 1]) != (*batch, m):
        raise ValueError(f"B must begin with the shape {(*batch, m)}, got {tuple(inputs[1].shape)}")
    shapes = _output_shapes(operation, inputs)
    if [tuple(c.shape) for c in cotangents] != shapes and not (
        operation == "slogdet" and [tuple(c.shape) for c in cotangents] == shapes[:1]
    ):
        raise ValueError(
            f"the cotangents of {operation} must have shapes {shapes}, "
            f"got {[tuple(c.shape) for c in cotangents]}"
        )
    for tensor in (*inputs, *cotangents):
        if tensor.dtype not in (matrix.dtype, matrix.real.dtype) or not (
            tensor.is_floating_point() or tensor.is_complex()
        ):
            raise ValueError(f"expected dtype {matrix.dtype}, got {tensor.dtype}")
        if not tensor.isfinite().all():
            raise ValueError("every number must be finite: exact gradients of NaN do not exist")


def _output_shapes(operation: str, inputs: Sequence[Tensor]) -> list[tuple[int, ...]]:
    *batch, m, n = inputs[0].shape
    k = min(m, n)
    return {
        "lu_factor": [(*batch, m, n)],
        "lu": [(*batch, m, k), (*batch, k, n)],
        "pinv": [(*batch, n, m)],
        "lstsq": [(*batch, n, *inputs[-1].shape[len(batch) + 1 :])],
        "solve": [(*batch, n, *inputs[-1].shape[len(batch) + 1 :])],
        "inv": [(*batch, n, n)],
        "det": [(*batch,)],
        "slogdet": [(*batch,), (*batch,)],
    }[operation]


def _plain(tensor: Tensor) -> NDArray[Any]:
    """Bring a tensor to NumPy with its values unchanged."""
    return tensor.detach().cpu().resolve_conj().resolve_neg().numpy()


def _packed(lower: Tensor, upper: Tensor) -> Tensor:
    """Pack the cotangents of L and U as lu_factor packs the factors."""
    (rows, k), columns = lower.shape[-2:], upper.shape[-1]
    packed = lower.new_zeros(*lower.shape[:-2], rows, columns)
    packed[..., :, :k] += lower.tril(-1)
    packed[..., :k, :] += upper.triu()
    return packed


def _row_order(pivots: Tensor, shape: torch.Size, rank: int) -> NDArray[np.int64]:
    """Turn the first `rank` of LAPACK's successive row swaps into the order of A's rows in PᵀA."""
    *batch, m, n = shape
    if pivots.shape != (*batch, min(m, n)):
        raise ValueError(f"pivots must be {(*batch, min(m, n))}, got {tuple(pivots.shape)}")
    swaps = pivots.cpu().numpy().astype(np.int64) - 1
    order = np.broadcast_to(np.arange(m), (*batch, m)).copy()
    for step in range(rank):
        other = swaps[..., step, None]
        moved = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., step, None], -1)
        order[..., step, None] = moved
    return order


def _stacked(
    parts: Sequence[ScaledPair], shape: tuple[int, ...], batch: tuple[int, ...]
) -> ScaledPair:
    if not parts:
        empty = np.zeros(shape if len(shape) > len(batch) + 1 else (*shape, 1))
        return ScaledPair(empty, empty, np.zeros(batch, np.int32), shape)
    size = parts[0].high.shape
    return ScaledPair(
        np.stack([part.high for part in parts]).reshape(*batch, *size),
        np.stack([part.low for part in parts]).reshape(*batch, *size),
        np.array([part.exponent for part in parts], np.int32).reshape(batch),
        shape,
    )
