"""Cases of the reverse of an LU factorization by halves."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from upstream.inputs import operations, random
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "lu")


def _factored(A: Tensor) -> Tensor:
    """The packed factors."""
    return torch.linalg.lu_factor(A).LU


def _unpacked(A: Tensor) -> Tensor:
    """Lᵀ beside U."""
    _, L, U = torch.linalg.lu(A)
    return torch.cat([L.mT, U], -1)


def samples() -> Iterator[Sample]:
    for m, n in ((1024, 1024), (1024, 256), (256, 1024)):
        for name, function in (("lu_factor", _factored), ("lu", _unpacked)):
            counted = operations(function, m * n * min(m, n), random(m, n))
            yield Sample(f"{name} of {m}x{n}: operations over m n min(m, n)", counted, 4.0)


def gradients() -> Iterator[Gradient]:
    # Beyond 128 there are halves, of 129 unequal ones, of 260 halves of halves.
    for shape in (
        *((0, 0), (5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (2, 0, 0), (0, 3, 3)),
        *((2, 3, 4, 4), (2, 5, 2), (2, 2, 5), (129, 129), (140, 129), (129, 140), (260, 260)),
    ):
        for dtype in (torch.float64, torch.complex128):
            label = f"{'x'.join(map(str, shape))} {dtype}"
            yield Gradient(label, _factored, (random(*shape, dtype=dtype),))
            yield Gradient(f"lu, {label}", _unpacked, (random(*shape, dtype=dtype),))


def timed() -> Iterator[Timed]:
    shapes = (
        (16, 16),
        (128, 128),
        (512, 512),
        (1024, 1024),
        (2048, 256),
        (256, 2048),
        (16, 256, 256),
    )
    for shape in shapes:
        yield Timed("x".join(map(str, shape)), _factored, (random(*shape),))
    yield Timed("lu of 512x512", _unpacked, (random(512, 512),))


stability = partial(certified_ratios, "lu_factor", _factored)
