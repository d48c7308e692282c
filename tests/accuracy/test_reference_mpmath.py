"""The reference against independent code: differences in 80-digit mpmath, exact to 20."""

import mpmath
import pytest
import torch

from strategies import operations
from strategies.accuracy import gradient
from tests.exact.by_mpmath import forward, moved, paired

STEP = mpmath.mpf(10) ** -25


def _exactly(tensor: torch.Tensor) -> mpmath.matrix:
    return mpmath.matrix((tensor if tensor.ndim else tensor.reshape(1, 1)).tolist())


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        *(("lu_factor", shape) for shape in ((3, 3), (4, 2), (2, 4))),
        *((operation, shape) for operation in ("pinv", "lstsq") for shape in ((4, 3), (2, 3))),
        *((operation, (3, 3)) for operation in ("solve", "inv", "det", "slogdet")),
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
        function, at = forward(operation, range(shape[0])), [*map(_exactly, inputs)]
        with mpmath.workdps(80):
            gradients = [
                (_exactly(torch.from_numpy(part.high)) + _exactly(torch.from_numpy(part.low)))
                * mpmath.mpf(2) ** int(part.exponent)
                for part in exact.parts
            ]
            for _ in range(2):
                directions = [
                    _exactly(torch.randn(s, dtype=dtype, generator=generator)) for s in shapes
                ]
                ahead, behind = (function(*moved(at, directions, s)) for s in (STEP, -STEP))
                change = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
                expected = paired([_exactly(cotangent)], change)
                found = paired(gradients, directions)
                assert abs(found - expected) < mpmath.mpf(10) ** -25 * max(1, abs(expected))
