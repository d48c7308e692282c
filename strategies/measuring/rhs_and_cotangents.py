"""Right-hand sides and cotangents that are hard, by name: what a Gaussian one hides.

One drawn at random has parts of equal size along all singular vectors of A, in which what an algorithm
adds along the most sensitive one drowns. Each is computed in double precision from A.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Generator, Tensor

Side = Callable[[Tensor, int, Generator], Tensor]
"""From A, (..., m, n), a number of columns k and random numbers to a side, (..., m, k)."""


def normal(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """Standard normal numbers, which are not hard."""
    return torch.randn(*A.shape[:-1], columns, dtype=A.dtype, generator=generator)


def _image(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """A X with small integers X: the residual is roundoff."""
    size = *A.shape[:-2], A.shape[-1], columns
    return A @ torch.randint(1, 5, size, generator=generator).to(A.dtype)


def _near_image(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """The same with a residual of a millionth."""
    image, other = _image(A, columns, generator), normal(A, columns, generator)
    size, its_size = (torch.linalg.matrix_norm(side, keepdim=True) for side in (image, other))
    return image + 1e-6 * size / its_size * other


def _complement(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """Orthogonal to the range of A, or random where there is nothing but the range."""
    side = normal(A, columns, generator)
    if A.shape[-2] <= A.shape[-1]:
        return side
    Q = torch.linalg.qr(A).Q
    return side - Q @ (Q.mH @ side)


def _gram(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """A Aᴴ W with W random, along the largest singular vectors."""
    return A @ (A.mH @ normal(A, columns, generator))


def _singular_vector(which: int) -> Side:
    def side(A: Tensor, columns: int, _: Generator) -> Tensor:
        U = torch.linalg.svd(A, full_matrices=False).U
        vector = U[..., [which]] if U.shape[-1] else U.new_zeros(*U.shape[:-1], 1)
        return vector * torch.ones(columns, dtype=A.dtype)

    return side


def _one_entry(A: Tensor, columns: int, generator: Generator) -> Tensor:
    side = A.new_zeros(*A.shape[:-1], columns)
    row, column = (int(torch.randint(size, (), generator=generator)) for size in side.shape[-2:])
    side[..., row, column] = 1
    return side


def _graded(A: Tensor, columns: int, generator: Generator) -> Tensor:
    """Rows of sizes from 1 down to 1e-8, in random order."""
    sizes = torch.logspace(0, -8, A.shape[-2], dtype=torch.float64)
    shuffled = sizes[torch.randperm(len(sizes), generator=generator)]
    return normal(A, columns, generator) * shuffled.unsqueeze(-1)


COTANGENTS: Mapping[str, Side] = {
    "ones": lambda A, columns, _: A.new_ones(*A.shape[:-1], columns),
    "image": _image,
    "gram": _gram,
    "first_singular_vector": _singular_vector(0),
    "last_singular_vector": _singular_vector(-1),
    "one_entry": _one_entry,
    "graded": _graded,
}
"""The cotangents by name, as right-hand sides of Aᴴ: that of X = A⁺B has the rows of Aᴴ."""

RIGHT_SIDES = {**COTANGENTS, "near_image": _near_image, "complement": _complement}
"""The right-hand sides by name."""
