"""Cases of the derivatives of the inverse from a Cholesky factor."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from upstream.inputs import operations, random, relative_error
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("cholesky_inverse",)


def _inverse(*, upper: bool) -> Callable[[Tensor], Tensor]:
    """Of a factor with a real diagonal, as the function expects it."""

    def function(factor: Tensor) -> Tensor:
        if factor.is_complex():
            diagonal = factor.diagonal(dim1=-2, dim2=-1)
            factor = factor - torch.diag_embed(1j * diagonal.imag)
        return torch.cholesky_inverse(factor, upper=upper)

    return function


def _of_triangle(factor: Tensor) -> Tensor:
    """With gradients where the certified ones are, in PyTorch as well."""
    return _inverse(upper=False)(factor.tril())


def _factor(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """One with numbers in the other triangle, too."""
    identity = torch.eye(shape[-1], dtype=dtype)
    return (random(*shape, dtype=dtype).detach() / 2 + 3 * identity).requires_grad_()


def _of_2x2() -> tuple[Tensor, Tensor]:
    """L = [[2, 0], [1, 2]] and the gradient of the sum of (L Lᵀ)⁻¹.

    That of [[a, 0], [b, c]] is 1/a² + (a − b)²/(ac)².
    """
    L = torch.tensor([[2, 0], [1, 2]], dtype=torch.float64, requires_grad=True)
    return L, L.new_tensor([[-3 / 16, 0], [-1 / 8, -1 / 16]]).detach()


def _gradient() -> float:
    """The error of the gradient."""
    L, exact = _of_2x2()
    return relative_error(torch.autograd.grad(torch.cholesky_inverse(L).sum(), L)[0], exact)


def _tangent() -> float:
    """The error in forward mode."""
    L, exact = _of_2x2()
    direction = torch.tensor([[1.0, 0.0], [2.0, -1.0]], dtype=torch.float64)
    tangent = torch.func.jvp(torch.cholesky_inverse, (L.detach(),), (direction,))[1]
    return relative_error(tangent.sum(), (exact * direction).sum())


def samples() -> Iterator[Sample]:
    yield Sample("[[2, 0], [1, 2]]: error", _gradient, 1e-12)
    yield Sample("[[2, 0], [1, 2]]: error in forward mode", _tangent, 1e-12)
    counted = operations(torch.cholesky_inverse, 512**3, _factor(512, 512))
    yield Sample("n = 512: operations over n³", counted, 4.0)


def gradients() -> Iterator[Gradient]:
    for dtype in (torch.float64, torch.complex128):
        for upper in (False, True):
            for shape in ((0, 0), (1, 1), (5, 5), (2, 3, 3), (0, 3, 3)):
                label = f"{shape} {dtype} upper={upper}"
                yield Gradient(label, _inverse(upper=upper), (_factor(*shape, dtype=dtype),))


def timed() -> Iterator[Timed]:
    for shape in ((16, 16), (128, 128), (512, 512), (256, 8, 8)):
        yield Timed("x".join(map(str, shape)), torch.cholesky_inverse, (_factor(*shape),))


stability = partial(certified_ratios, "cholesky_inverse", _of_triangle)
