"""Products with tall matrices that have few right-hand sides: their rows are a batch like another.

In a library a product two columns wide takes several times as long as to read the matrix, and one
whose result is as large as the matrix reads or writes it once more.
"""

# ruff: noqa: ARG005 - a kernel is declared with all that it reads
import math

import torch
from torch import Tensor

from strategies.kernels.cpu.calls import Call, by_rows

_ROWS = 256  # for each summand; from 64 to 1024 it makes no difference

# Up to so many entries the batch is better innermost, as measured.
_FEW_ENTRIES = 1024


_FEW_RIGHT_HAND_SIDES = 4

_gram_by_rows = Call(
    "gram_by_rows",
    lambda *_: (),
    flops=lambda matrix, columns, summands: 4 * _ROWS * summands.shape[-1],
    batch=lambda matrix, columns, summands: summands.shape[:1],
)
"""Writes the summands of AᴴA w, one for each so many rows of A: (parts, k·n).

The rows of all A lie one after the other, (rows, n), and the columns of all w are rows here.
"""

_lstsq_by_rows = Call(
    "lstsq_by_rows",
    lambda matrix, rhs, _: (by_rows(matrix), by_rows(rhs)),
    flops=lambda matrix, rhs, _: 8 * matrix.shape[-1] * rhs.shape[-1],
    batch=lambda matrix, *_: matrix.shape[:1],
)
"""Ā, (rows, n), and B̄, (rows, k): Z = A w and Ā = −Z Xᴴ + (B − A X) wᴴ.

The rows of all A and B lie one after the other. The columns of w and of X are rows here: k of w, then k of
X, for each matrix.
"""


def supports(matrix: Tensor, rhs: Tensor) -> bool:
    """Whether to call the functions below for least squares with A, (..., m, n), and B, (..., m, k)."""
    m, n = matrix.shape[-2:]
    has_few = 0 < rhs.shape[-1] <= _FEW_RIGHT_HAND_SIDES
    has_entries = m * n > _FEW_ENTRIES and matrix.is_contiguous()
    return has_few and has_entries and _lstsq_by_rows.supports(matrix, rhs, rhs)


def gram_product(matrix: Tensor, w: Tensor) -> Tensor:
    """AᴴA w, (..., n, k), in one pass over A, (..., m, n), contiguous; neither is empty."""
    m, n = matrix.shape[-2:]
    *batch, _, k = w.shape
    parts = math.ceil(m / _ROWS)
    summands = w.new_empty(math.prod(batch) * parts, k * n)
    _gram_by_rows(matrix.view(-1, n), w.mT.contiguous().view(-1, n), summands)
    return summands.view(*batch, parts, k, n).sum(-3).mT


def lstsq_gradients(
    w: Tensor, matrix: Tensor, rhs: Tensor, solution: Tensor
) -> tuple[Tensor, Tensor]:
    """Ā, (..., m, n), and B̄, (..., m, k), of tall least squares of full rank: see `formulas.lstsq`.

    From w = (AᴴA)⁻¹ G, (..., n, k), A, contiguous, B, with k ≥ 1, and X, (..., n, k).
    """
    n, k = w.shape[-2:]
    columns = torch.cat((w, solution), dim=-1).mT.contiguous().view(-1, n)
    rows = matrix.view(-1, n), rhs.contiguous().view(-1, k)
    gradient, rhs_gradient = _lstsq_by_rows(*rows, columns)
    return gradient.view(matrix.shape), rhs_gradient.view(rhs.shape)
