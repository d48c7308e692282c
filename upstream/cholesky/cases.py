"""Cases of the reverse of a Cholesky factorization by halves."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from upstream.inputs import operations, random
from upstream.patch import Gradient, Sample, Timed
from upstream.stability import certified_ratios

OPINFO = ("linalg.cholesky", "linalg.cholesky_ex")


def _positive(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    A, n = random(*shape, dtype=dtype).detach(), shape[-1]
    return (A @ A.mH / max(n, 1) + torch.eye(n, dtype=dtype)).requires_grad_()


def _hermitian(A: Tensor, *, upper: bool = False) -> Tensor:
    """A factor as a function of all entries, as finite differences need it."""
    return torch.linalg.cholesky((A + A.mH) / 2, upper=upper)


def samples() -> Iterator[Sample]:
    for n in (512, 1024):
        counted = operations(torch.linalg.cholesky, n**3, _positive(n, n))
        yield Sample(f"operations over n³, n = {n}", counted, 2.0)


def gradients() -> Iterator[Gradient]:
    # Beyond 128 there are halves, of 129 unequal ones, of 260 halves of halves.
    for shape in ((0, 0), (5, 5), (2, 0, 0), (0, 3, 3), (2, 3, 4, 4), (129, 129), (2, 260, 260)):
        for dtype in (torch.float64, torch.complex128):
            for upper in (False, True):
                label = f"{'x'.join(map(str, shape))} {dtype} upper={upper}"
                function = partial(_hermitian, upper=upper)
                yield Gradient(label, function, (_positive(*shape, dtype=dtype),))


def timed() -> Iterator[Timed]:
    for shape in ((16, 16), (128, 128), (512, 512), (1024, 1024), (64, 256, 256)):
        yield Timed("x".join(map(str, shape)), torch.linalg.cholesky, (_positive(*shape),))


stability = partial(certified_ratios, "cholesky", torch.linalg.cholesky)
