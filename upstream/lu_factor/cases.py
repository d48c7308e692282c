"""Cases of the reverse of an LU factorization by halves."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from strategies.measuring.work import work_of
from upstream.inputs import random
from upstream.patch import Cases, Gradient, Sample, Timed
from upstream.stability import certified_ratios


def _factored(A: Tensor) -> Tensor:
    """The packed factors."""
    return torch.linalg.lu_factor(A).LU


def _unpacked(A: Tensor) -> Tensor:
    """Lᵀ beside U."""
    _, L, U = torch.linalg.lu(A)
    return torch.cat([L.mT, U], -1)


def _operations(m: int, n: int, function: Callable[[Tensor], Tensor]) -> float:
    """Floating-point operations of the backward over m n min(m, n)."""
    A = random(m, n)
    factors = function(A)
    work = work_of(lambda: torch.autograd.grad(factors, A, torch.ones_like(factors)))
    return work.flops / (m * n * min(m, n))


def _samples() -> Iterator[Sample]:
    for m, n in ((1024, 1024), (1024, 256), (256, 1024)):
        for name, function in (("lu_factor", _factored), ("lu", _unpacked)):
            label = f"{name} of {m}x{n}: operations over m n min(m, n)"
            yield Sample(label, partial(_operations, m, n, function), 4.0)


def _gradients() -> Iterator[Gradient]:
    # Beyond 128 there are halves, of 129 unequal ones, of 260 halves of halves.
    for shape in (
        *((0, 0), (5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (2, 0, 0), (0, 3, 3)),
        *((2, 3, 4, 4), (2, 5, 2), (2, 2, 5), (129, 129), (140, 129), (129, 140), (260, 260)),
    ):
        for dtype in (torch.float64, torch.complex128):
            label = f"{'x'.join(map(str, shape))} {dtype}"
            yield Gradient(label, _factored, (random(*shape, dtype=dtype),))
            yield Gradient(f"lu, {label}", _unpacked, (random(*shape, dtype=dtype),))


def _timed() -> Iterator[Timed]:
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


CASES = Cases(
    opinfo=("linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "lu"),
    samples=_samples,
    gradients=_gradients,
    timed=_timed,
    stability=partial(certified_ratios, "lu_factor", "lu_factor", _factored),
)
