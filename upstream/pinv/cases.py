"""Cases of the gradient of a pseudoinverse without m×m products."""

from collections.abc import Iterator
from functools import partial

import torch

from upstream.inputs import deficient, operations, random, relative_error
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("linalg.pinv", "pinverse")


def _square() -> float:
    """The error where the gradient is −A S, no number is rounded, and the condition number is 3e5."""
    e = 2.0**-16
    A = torch.tensor([[1, 1], [1, 1 + e]], dtype=torch.float64, requires_grad=True)
    S = A.new_tensor([[1.0, 2.0], [3.0, 4.0]])
    with torch.no_grad():
        G, exact = A.mT @ A @ S @ A.mT, -A @ S
    return relative_error(torch.autograd.grad(torch.linalg.pinv(A), A, G)[0], exact)


def _small(t: float) -> float:
    """The error of the gradient of t·[1, 2]ᵀ, −[1, 7]ᵀ / (25 t²)."""
    A = torch.tensor([[t], [2 * t]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.linalg.pinv(A).sum(), A)
    return relative_error(gradient * t * t, -A.new_tensor([[1.0], [7.0]]) / 25)


def samples() -> Iterator[Sample]:
    yield Sample("square, κ = 3e5: error", _square, 1e-6)
    for t in (1e-110, 1e120):
        yield Sample(f"{t:.0e}·[1, 2]ᵀ: error", partial(_small, t), 1e-12)
    counted = operations(torch.linalg.pinv, 2 * 4096 * 32**2, random(4096, 32))
    yield Sample("4096x32: operations over 2mn²", counted, 10.0)


def gradients() -> Iterator[Gradient]:
    for dtype in (torch.float64, torch.complex128):
        for shape in ((0, 3), (4, 4), (7, 3), (3, 7), (2, 0, 5, 3), (2, 3, 5, 2)):
            A = random(*shape, dtype=dtype)
            yield Gradient(f"{shape} {dtype}", torch.linalg.pinv, (A,))
        for m, n in ((6, 4), (4, 6), (5, 5)):
            # Finite differences along matrices of rank 2.
            factors = random(m, 2, dtype=dtype), random(2, n, dtype=dtype)
            yield Gradient(f"rank 2, {m}x{n} {dtype}", deficient(torch.linalg.pinv), factors)


def timed() -> Iterator[Timed]:
    for shape in ((2048, 32), (32, 2048), (1024, 128), (256, 256), (64, 4, 4), (256, 64, 8)):
        yield Timed("x".join(map(str, shape)), torch.linalg.pinv, (random(*shape),))


stability = partial(certified_ratios, "pinv", torch.linalg.pinv)
