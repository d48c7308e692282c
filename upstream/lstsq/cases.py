"""Cases of the gradient of least squares by the factors of a QR."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from upstream.inputs import deficient, operations, random, relative_error
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("linalg.lstsq",)


def _solution(driver: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda A, B: torch.linalg.lstsq(A, B, driver=driver).solution


def _both(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """The residuals, too, which the other driver of deficient matrices returns."""
    found = torch.linalg.lstsq(A, B, driver="gelsd")
    return found.solution, found.residuals


def _consistent() -> float:
    """The error where B = A x and the gradient is −(A w) xᵀ: the condition number is 3e6."""
    e = 2.0**-20
    A = torch.tensor([[1, 1], [1, 1 + e], [1, 1 - e]], dtype=torch.float64, requires_grad=True)
    x, w = A.new_tensor([[1.0], [1.0]]), A.new_tensor([[1.0], [2.0]])
    with torch.no_grad():
        B, G, exact = A @ x, A.mT @ (A @ w), -(A @ w) @ x.mT
    (gradient,) = torch.autograd.grad(_solution("gels")(A, B), A, G)
    return relative_error(gradient, exact)


def samples() -> Iterator[Sample]:
    yield Sample("consistent 3x2, κ = 3e6: error", _consistent, 1e-8)
    for m, n in ((4096, 32), (32, 2048)):
        of_qr = 4 * max(m, n) * min(m, n) ** 2  # with its basis
        # Of the other drivers the patch reads the rank, for which the mode that counts has no data.
        counted = operations(_solution("gels"), of_qr, random(m, n), random(m, 1))
        yield Sample(f"{m}x{n}, k = 1: operations over those of a QR", counted, 2.0)


def gradients() -> Iterator[Gradient]:
    for dtype in (torch.float64, torch.complex128):
        for driver in ("gels", "gelsy"):
            for batch in ((), (2,)):
                for m, n in ((6, 3), (3, 6), (4, 4), (3, 0), (0, 3)):
                    inputs = random(*batch, m, n, dtype=dtype), random(*batch, m, 2, dtype=dtype)
                    yield Gradient(f"{driver} {batch} {m}x{n} {dtype}", _solution(driver), inputs)
        yield Gradient(
            f"vectors {dtype}",
            _solution("gelsy"),
            (random(2, 5, 3, dtype=dtype), random(2, 5, dtype=dtype)),
        )
        yield Gradient(
            f"residuals {dtype}",
            _both,
            (random(2, 6, 3, dtype=dtype), random(2, 6, 2, dtype=dtype)),
        )
        for m, n in ((6, 4), (4, 6), (5, 5)):
            # Finite differences along matrices of rank 2.
            factors = random(m, 2, dtype=dtype), random(2, n, dtype=dtype)
            B = random(m, 3, dtype=dtype)
            solution = deficient(_solution("gelsd"))
            yield Gradient(f"rank 2, {m}x{n} {dtype}", solution, (*factors, B))


def timed() -> Iterator[Timed]:
    for m, n, k in ((2048, 32, 1), (32, 2048, 1), (512, 64, 8), (256, 256, 16)):
        yield Timed(f"{m}x{n}, k = {k}", _solution("gelsy"), (random(m, n), random(m, k)))
    yield Timed("64 of 64x8, k = 1", _solution("gelsy"), (random(64, 64, 8), random(64, 64, 1)))


# The default driver, gelsy, reads stale pivots in 2.13: solutions of equal calls differ.
stability = partial(certified_ratios, "lstsq", _solution("gelsd"))
