"""The reference against independent code: differences in 80-digit mpmath.

Nothing of the reference's formulas is used: each operation's forward computation is written with
mpmath and differentiated numerically at a step that its precision makes exact to 20 digits.
"""

from collections.abc import Callable

import mpmath
import pytest
import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy import gradient
from strategies.accuracy.certified import ScaledPair

STEP = mpmath.mpf(10) ** -25


def _pinv(a: mpmath.matrix) -> mpmath.matrix:
    if a.rows < a.cols:
        return a.H * mpmath.inverse(a * a.H)
    return mpmath.inverse(a.H * a) * a.H


def _lu(a: mpmath.matrix) -> mpmath.matrix:
    """Doolittle without pivoting, packed."""
    packed = a.copy()
    for k in range(min(a.rows, a.cols)):
        for i in range(k + 1, a.rows):
            packed[i, k] /= packed[k, k]
            for j in range(k + 1, a.cols):
                packed[i, j] -= packed[i, k] * packed[k, j]
    return packed


def _scalar(value: mpmath.mpf) -> mpmath.matrix:
    return mpmath.matrix([[value]])


FORWARD: dict[str, Callable[..., mpmath.matrix]] = {
    "lu_factor": _lu,
    "pinv": _pinv,
    "lstsq": lambda a, b: _pinv(a) * b,
    "solve": lambda a, b: mpmath.inverse(a) * b,
    "inv": mpmath.inverse,
    "det": lambda a: _scalar(mpmath.det(a)),
    "slogdet": lambda a: _scalar(mpmath.log(abs(mpmath.det(a)))),
}


def _exactly(tensor: Tensor) -> mpmath.matrix:
    matrix = tensor if tensor.ndim else tensor.reshape(1, 1)
    return mpmath.matrix(matrix.tolist())


def _directional(
    operation: str, inputs: list[Tensor], directions: list[Tensor], cotangent: Tensor
) -> mpmath.mpf:
    def forward(step: mpmath.mpf) -> mpmath.matrix:
        moved = (_exactly(x) + step * _exactly(d) for x, d in zip(inputs, directions, strict=True))
        return FORWARD[operation](*moved)

    change = (forward(STEP) - forward(-STEP)) / (2 * STEP)
    weights = _exactly(cotangent)
    pairs = zip(weights, change, strict=True)
    return mpmath.fsum(mpmath.re(mpmath.conj(weight) * value) for weight, value in pairs)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        ("lu_factor", (3, 3)),
        ("lu_factor", (4, 2)),
        ("lu_factor", (2, 4)),
        ("pinv", (4, 3)),
        ("pinv", (2, 3)),
        ("lstsq", (4, 3)),
        ("lstsq", (2, 3)),
        ("solve", (3, 3)),
        ("inv", (3, 3)),
        ("det", (3, 3)),
        ("slogdet", (3, 3)),
    ],
)
def test_agrees_with_mpmath(operation: str, shape: tuple[int, int]) -> None:
    record = operations.get(operation)
    for dtype in (torch.float64, torch.complex128):
        generator = torch.Generator().manual_seed(3)
        shapes = (shape, (shape[0], 2))[: record.arity]
        inputs = [torch.randn(size, dtype=dtype, generator=generator) for size in shapes]
        kind = dtype.to_real() if operation == "slogdet" else dtype
        size = record.output_shapes(*shapes)[-1]
        cotangent = torch.randn(size, dtype=kind, generator=generator)
        pivots = torch.arange(1, min(shape) + 1, dtype=torch.int32) if record.pivoted else None
        exact = gradient(operation, inputs, (cotangent,), pivots=pivots)
        with mpmath.workdps(80):
            for _ in range(2):
                directions = [torch.randn(s, dtype=dtype, generator=generator) for s in shapes]
                expected = _directional(operation, inputs, directions, cotangent)
                found = mpmath.fsum(map(_inner, exact.parts, directions))
                assert abs(found - expected) < mpmath.mpf(10) ** -25 * max(1, abs(expected))


def _inner(part: ScaledPair, direction: Tensor) -> mpmath.mpf:
    high, low = (_exactly(torch.from_numpy(piece)) for piece in (part.high, part.low))
    value = (high + low) * mpmath.mpf(2) ** int(part.exponent)
    pairs = zip(value, _exactly(direction), strict=True)
    return mpmath.fsum(mpmath.re(mpmath.conj(v) * d) for v, d in pairs)
