"""Cases of the gradient of LU factors by products of rank k."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from strategies.formulas.amplification import unit_roundoff
from upstream.inputs import operations, random
from upstream.patch import Gradient, Sample, Timed, enabled

OPINFO = ("linalg.lu_solve", "lu_solve")

_SHAPES = (
    *(((5, 5), (5, 2)), ((5, 5), (5, 4)), ((2, 4, 4), (2, 4, 1)), ((4, 4), (3, 4, 2))),
    ((0, 3, 3), (0, 3, 2)),
)
"""Of the factors and of the right-hand sides."""


def _solve(pivots: Tensor, *, left: bool = True, adjoint: bool = False) -> Callable[..., Tensor]:
    """The solution as a function of the factors and the right-hand side."""
    return lambda LU, B: torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)


def _factored(*shape: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    LU, pivots = torch.linalg.lu_factor(random(*shape, dtype=dtype).detach())
    return LU.requires_grad_(), pivots


def samples() -> Iterator[Sample]:
    LU, pivots = _factored(512, 512)
    counted = operations(_solve(pivots), 512**2, LU, random(512, 1))
    yield Sample("n = 512, k = 1: operations over n²", counted, 20.0)


def gradients() -> Iterator[Gradient]:
    for dtype, adjoint, left, (shape, of_B) in itertools.product(
        (torch.float64, torch.complex128), (False, True), (False, True), _SHAPES
    ):
        LU, pivots = _factored(*shape, dtype=dtype)
        B = random(*of_B, dtype=dtype).detach()
        B = (B if left else B.mT.contiguous()).requires_grad_()
        label = f"{shape} {of_B} {dtype} left={left} adjoint={adjoint}"
        yield Gradient(label, _solve(pivots, left=left, adjoint=adjoint), (LU, B))


def timed() -> Iterator[Timed]:
    for n, k in ((16, 1), (128, 1), (512, 1), (512, 16), (512, 512)):
        LU, pivots = _factored(n, n)
        solve = partial(_solve(pivots), B=random(n, k).detach())
        yield Timed(f"{n}x{n}, k = {k}", solve, (LU,))
    LU, pivots = _factored(256, 32, 32)
    solve = partial(_solve(pivots), B=random(256, 32, 1).detach())
    yield Timed("256 of 32x32, k = 1", solve, (LU,))


def stability(seed: int, count: int) -> Iterator[tuple[float, float]]:
    """Ratios in single precision, for which PyTorch's formula in double precision is exact.

    The ratio is that of `strategies.accuracy.stability`, at factors that are the input.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    def gradient(LU: Tensor, pivots: Tensor, B: Tensor, G: Tensor) -> Tensor:
        LU = LU.detach().requires_grad_()
        X = torch.linalg.lu_solve(LU, pivots, B)
        return torch.autograd.grad(X, LU, G)[0].double()

    u = unit_roundoff(torch.float32)
    for _ in range(count):
        n = int(torch.randint(2, 60, (), generator=generator))
        digits = drawn(1).abs().clamp(max=2) * 2
        U, _, V = torch.linalg.svd(drawn(n, n))
        A = U @ torch.diag(10 ** (-digits * torch.linspace(0, 1, n))) @ V
        LU, pivots = torch.linalg.lu_factor(A.float())
        given = LU, drawn(n, 2).float(), drawn(n, 2).float()
        doubled = [each.double() for each in given]
        exact = gradient(doubled[0], pivots, *doubled[1:])
        allowed = u * float(exact.norm())
        for _ in range(4):
            moved = [each * (1 + u * drawn(*each.shape)) for each in doubled]
            difference = gradient(moved[0], pivots, *moved[1:]) - exact
            allowed = max(allowed, float(difference.norm()))
        before = gradient(given[0], pivots, *given[1:])
        with enabled("lu_solve"):
            after = gradient(given[0], pivots, *given[1:])
        yield _ratio(before - exact, allowed), _ratio(after - exact, allowed)


def _ratio(error: Tensor, allowed: float) -> float:
    ratio = float(error.norm()) / allowed
    return ratio if math.isfinite(ratio) else math.inf
