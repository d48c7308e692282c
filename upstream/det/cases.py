"""Cases of the gradient of a determinant at singular matrices."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from upstream.inputs import random, relative_error
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("linalg.det",)


def _matrix(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


def _first(A: Tensor, exact: Tensor) -> float:
    """The error of the gradient."""
    (gradient,) = torch.autograd.grad(torch.linalg.det(A), A)
    return relative_error(gradient, exact)


def _second(A: Tensor, direction: Tensor, exact: Tensor) -> float:
    """The error of the derivative of the gradient along a direction."""
    (gradient,) = torch.autograd.grad(torch.linalg.det(A), A, create_graph=True)
    (second,) = torch.autograd.grad(gradient, A, direction)
    return relative_error(second, exact)


def _tangent(A: Tensor, direction: Tensor, exact: float) -> float:
    """The error in forward mode, infinite where that refuses."""
    try:
        tangent = torch.func.jvp(torch.linalg.det, (A.detach(),), (direction,))[1]
    except RuntimeError:
        return math.inf
    return abs(float(tangent) / exact - 1)


def samples() -> Iterator[Sample]:
    singular = _matrix([[2, 4], [3, 6]])
    adjugate = _matrix([[6, -3], [-4, 2]]).detach()
    direction = _matrix([[1, 2], [-1, 3]]).detach()
    yield Sample("[[2, 4], [3, 6]]: error", partial(_first, singular, adjugate), 1e-12)
    forward = partial(_tangent, singular, direction, 10.0)
    yield Sample("[[2, 4], [3, 6]]: error in forward mode", forward, 1e-12)
    zero, exact = _matrix([[0, 0], [0, 0]]), _matrix([[3, 1], [-2, 1]]).detach()
    yield Sample("zero, 2×2: second order", partial(_second, zero, direction, exact), 1e-12)
    W, identity = random(16, 16).detach(), torch.eye(16, dtype=torch.float64)
    exact = 0.1**14 * (W.trace() * identity - W.mT)
    scaled = (0.1 * identity).requires_grad_()
    yield Sample("I / 10, 16×16: second order", partial(_second, scaled, W, exact), 1e-12)


def _of_rank(rank: int, *shape: int, dtype: torch.dtype) -> Tensor:
    """Square matrices of a rank as an input of a gradient, along which the rank may change."""
    left, right = random(*shape, rank, dtype=dtype), random(*shape, rank, dtype=dtype)
    return (left @ right.mH).detach().requires_grad_()


def gradients() -> Iterator[Gradient]:
    for dtype in (torch.float64, torch.complex128):
        for shape in ((0, 0), (1, 1), (2, 2), (3, 3), (6, 6), (2, 3, 3), (0, 3, 3)):
            A = random(*shape, dtype=dtype)
            yield Gradient(f"{shape} {dtype}", torch.linalg.det, (A,))
        for *batch, n, rank in ((1, 0), (2, 0), (2, 1), (3, 1), (5, 3), (5, 4), (2, 4, 3)):
            A = _of_rank(rank, *batch, n, dtype=dtype)
            yield Gradient(f"{(*batch, n, n)} of rank {rank} {dtype}", torch.linalg.det, (A,))
        mixed = torch.stack([_of_rank(rank, 4, dtype=dtype).detach() for rank in (4, 2, 3)])
        yield Gradient(f"mixed ranks {dtype}", torch.linalg.det, (mixed.requires_grad_(),))
        equal = (0.1 * torch.eye(5, dtype=dtype)).requires_grad_()
        yield Gradient(f"equal singular values {dtype}", torch.linalg.det, (equal,))


def timed() -> Iterator[Timed]:
    for shape in ((4, 4), (32, 32), (256, 256), (256, 8, 8)):
        yield Timed("x".join(map(str, shape)), torch.linalg.det, (random(*shape),))


stability = partial(certified_ratios, "det", torch.linalg.det)
