"""Cases of the reverse of an LU factorization by halves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from strategies.measuring.work import work_of
from upstream.inputs import random
from upstream.patch import Cases, Gradient, Sample, Timed
from upstream.stability import certified_ratios

__all__ = ["CASES"]


def _factored(A: Tensor) -> Tensor:
    """The packed factors."""
    return torch.linalg.lu_factor(A).LU


def _operations(m: int, n: int) -> float:
    """Floating-point operations of the backward over m n min(m, n)."""
    A = random(m, n)
    LU = _factored(A)
    work = work_of(lambda: torch.autograd.grad(LU, A, torch.ones_like(LU)))
    return work.flops / (m * n * min(m, n))


def _samples() -> Iterator[Sample]:
    for m, n in ((1024, 1024), (1024, 256), (256, 1024)):
        label = f"{m}x{n}: operations over m n min(m, n)"
        yield Sample(label, partial(_operations, m, n), 4.0)


def _gradients() -> Iterator[Gradient]:
    # Beyond 128 there are halves, of 129 unequal ones, of 260 halves of halves.
    for shape in (
        *((0, 0), (5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (2, 0, 0), (0, 3, 3)),
        *((2, 3, 4, 4), (2, 5, 2), (2, 2, 5), (129, 129), (140, 129), (129, 140), (260, 260)),
    ):
        for dtype in (torch.float64, torch.complex128):
            label = f"{'x'.join(map(str, shape))} {dtype}"
            yield Gradient(label, _factored, (random(*shape, dtype=dtype),))


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


CASES = Cases(
    opinfo=("linalg.lu_factor", "linalg.lu_factor_ex", "lu"),
    samples=_samples,
    gradients=_gradients,
    timed=_timed,
    stability=partial(certified_ratios, "lu_factor", "lu_factor", _factored),
)
