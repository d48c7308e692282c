"""Certified exact gradients: what a computed gradient is compared with.

Inputs are taken as the exact binary numbers they are. The formulas run in ball arithmetic, at
a precision that is doubled until the proven radius is 2⁻²⁰ of the tested dtype's unit roundoff.
Needs python-flint.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strategies import operations
from strategies.accuracy.cache import Cache, fingerprint
from strategies.accuracy.certified import Certified, ScaledPair, as_array
from strategies.factors.pivots import inverse_order, order_of
from strategies.operations import Operation

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
        operation: a name of `strategies.operations.names()`, with torch.linalg's meaning.
        inputs: (A,), or (A, B) for lstsq and solve; A is (..., m, n), B is (..., m, k) or
            (..., m). float32, float64, complex64 or complex128, one dtype, any device.
        cotangents: one for each differentiable output; those of the first outputs may be left out
            and count as zero. lu_factor: of the packed m×n factors; lu: of L and of U; slogdet:
            of sign and logabsdet, or of logabsdet alone.
        rank: the exact rank of every matrix of the batch; None means full rank. It is checked,
            not trusted.
        pivots: lu_factor and lu only: the pivots torch.linalg.lu_factor returned in the
            computation that is tested. By default lu_factor is called here. With `rank`, only
            the first `rank` pivots count and the other rows keep their places.

    Returns:
        The gradients of the inputs with their certificate.

    Raises:
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
    record = operations.get(operation)
    if not record.pivoted and pivots is not None:
        raise ValueError(f"{operation} has no pivots")
    return _certified(record, inputs, cotangents, rank, pivots)


def lu_gradient_at_factors(
    LU: Tensor, pivots: Tensor, cotangent: Tensor, *, rank: int | None = None
) -> Certified:
    """Evaluate the gradient of lu_factor exactly at factors that were stored.

    The stored factors are the exact factors of their own product, so this is the exact gradient
    there. Its distance from a computed gradient is what the backward pass itself added, free
    of the error of the factorization. Of L and U the first `rank` columns and rows count.
    """
    return _certified(operations.get("lu_factor"), (LU,), (cotangent,), rank, pivots, stored=True)


def checked(
    record: Operation, inputs: Sequence[Tensor], cotangents: Sequence[Tensor], rank: int | None
) -> list[Tensor]:
    """Refuse what does not fit, naming both values; return all cotangents."""
    if len(inputs) != record.arity:
        raise ValueError(f"{record.name} has {record.arity} inputs, got {len(inputs)}")
    matrix = inputs[0]
    if matrix.ndim < 2:
        raise ValueError(f"A must have at least two dimensions, got shape {tuple(matrix.shape)}")
    *batch, m, n = matrix.shape
    if record.square and m != n:
        raise ValueError(f"{record.name} needs square matrices, got {m}×{n}")
    least = min(m, n) if record.needs_full_rank else 0
    if rank is not None and not least <= rank <= min(m, n):
        raise ValueError(f"{record.name} of {m}×{n} needs {least} ≤ rank ≤ {min(m, n)}, got {rank}")
    for rhs in inputs[1:]:
        if tuple(rhs.shape[: matrix.ndim - 1]) != (*batch, m):
            raise ValueError(f"B must begin with the shape {(*batch, m)}, got {tuple(rhs.shape)}")
    expected = record.output_shapes(*(tuple(tensor.shape) for tensor in inputs))
    left_out = [matrix.new_zeros(shape) for shape in expected[: len(expected) - len(cotangents)]]
    shapes = [tuple(cotangent.shape) for cotangent in (*left_out, *cotangents)]
    if shapes != expected or not cotangents:
        problem = f"the cotangents of {record.name} must have shapes {expected}"
        raise ValueError(f"{problem}, got {[tuple(cotangent.shape) for cotangent in cotangents]}")
    for tensor in (*inputs, *cotangents):
        if tensor.dtype not in (matrix.dtype, matrix.dtype.to_real()) or not (
            tensor.is_floating_point() or tensor.is_complex()
        ):
            raise ValueError(f"expected dtype {matrix.dtype}, got {tensor.dtype}")
        if not tensor.isfinite().all():
            raise ValueError("every number must be finite: exact gradients of NaN do not exist")
    return [*left_out, *cotangents]


def _certified(
    record: Operation,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    rank: int | None,
    pivots: Tensor | None,
    *,
    stored: bool = False,
) -> Certified:
    """Take the gradients from the cache or evaluate them; `stored`: packed factors stand in A's place."""
    cotangents = checked(record, inputs, cotangents, rank)
    # To import python-flint takes as long as many a call of the package.
    from strategies.accuracy.evaluation import certify
    from strategies.exact.problem import Problem, StoredFactors

    batch, (m, n) = inputs[0].shape[:-2], inputs[0].shape[-2:]
    rank = min(m, n) if rank is None else rank
    arrays = [as_array(tensor) for tensor in (*inputs, *cotangents)]
    if record.pivoted and pivots is None:
        pivots = torch.linalg.lu_factor_ex(inputs[0].detach())[1]
    order = None if pivots is None else row_order(pivots, inputs[0].shape, rank)
    if not all(tensor.numel() for tensor in inputs):
        zeros = [np.zeros_like(a, np.result_type(a, np.float64)) for a in arrays[: record.arity]]
        exponent = np.zeros(batch, np.int32)
        return Certified(tuple(ScaledPair(zero, zero, exponent) for zero in zeros), 0.0, 0)
    kind = StoredFactors if stored else Problem
    cache = Cache() if inputs[0].numel() >= _WORTH_CACHING else None
    hashed = arrays if order is None else [*arrays, order]
    key = fingerprint(f"{kind.__name__} {record.name}", rank, hashed)
    if cache and (known := cache.load(key)):
        return known
    results = []
    for index in np.ndindex(*batch):
        of_one = [array[index] for array in arrays]
        given, asked = tuple(of_one[: record.arity]), tuple(of_one[record.arity :])
        problem = kind(given, asked, rank, None if order is None else order[index])
        results.append(certify(problem, record.exact))
    parts = zip(*(result.parts for result in results), strict=True)
    certified = Certified(
        tuple(_stacked(part, x.shape, batch) for part, x in zip(parts, inputs, strict=True)),
        max(result.radius for result in results),
        max(result.bits for result in results),
    )
    if cache:
        cache.store(key, certified)
    return certified


def row_order(pivots: Tensor, shape: torch.Size, rank: int) -> NDArray[np.int64]:
    """Turn the first `rank` of LAPACK's successive row swaps into the order of A's rows in PᵀA."""
    *batch, m, n = shape
    if pivots.shape != (*batch, min(m, n)):
        raise ValueError(f"pivots must be {(*batch, min(m, n))}, got {tuple(pivots.shape)}")
    return order_of(inverse_order(pivots.cpu()[..., :rank], m)).numpy()


def _stacked(parts: Sequence[ScaledPair], shape: torch.Size, batch: torch.Size) -> ScaledPair:
    return ScaledPair(
        np.stack([part.high for part in parts]).reshape(shape),
        np.stack([part.low for part in parts]).reshape(shape),
        np.stack([part.exponent for part in parts]).reshape(batch),
    )
