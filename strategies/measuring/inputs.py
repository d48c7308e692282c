"""Random inputs of a case, with the condition number or the rank that it asks for."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from strategies import operations
from strategies.accuracy import gallery

if TYPE_CHECKING:
    from strategies.measuring.case import Case


def generator_of(case: Case, stream: int) -> Generator:
    """Random numbers of a case; on the CPU, so that every device sees the same ones."""
    return Generator().manual_seed(2 * case.seed + stream)


@functools.lru_cache(maxsize=1)
def draw(case: Case) -> tuple[Tensor, ...]:
    """A, and B where the operation takes one: see `Case.inputs`."""
    generator = generator_of(case, stream=0)
    dtype = torch.complex128 if case.dtype.is_complex else torch.float64
    if case.matrix is not None:
        drawn = [specimen(case).matrix]
    elif case.rank is None:
        drawn = [_with_condition(case, dtype, generator)]
    else:
        drawn = [_with_rank(case, case.rank, dtype, generator)]
    if operations.get(case.operation).arity == 2:
        size = *_lead(case), case.shape[0], case.rhs
        drawn.append(torch.randn(size, dtype=dtype, generator=generator))
    return tuple(a.to(case.device, case.dtype).requires_grad_() for a in drawn)


def specimen(case: Case) -> gallery.Specimen:
    """The matrix of the gallery that a case names, with what is known of it."""
    assert case.matrix is not None
    return gallery.make(case.matrix, case.shape, case.dtype, _lead(case), case.seed)


def _lead(case: Case) -> tuple[int, ...]:
    return (case.batch,) if case.batch else ()


def _with_condition(case: Case, dtype: torch.dtype, generator: Generator) -> Tensor:
    """Random singular vectors, log-spaced singular values from √κ to 1/√κ.

    Their geometric mean is one, so that determinants neither overflow nor vanish.
    """
    rank = min(case.shape)
    left, right = (
        torch.linalg.qr(torch.randn(*_lead(case), side, rank, dtype=dtype, generator=generator)).Q
        for side in case.shape
    )
    half = (1.0 if case.log10_cond is None else case.log10_cond) / 2
    matrix: Tensor = (left * torch.logspace(half, -half, rank, dtype=torch.float64)) @ right.mH
    return matrix


def _with_rank(case: Case, rank: int, dtype: torch.dtype, generator: Generator) -> Tensor:
    """X Yᵀ of two m×rank and n×rank factors of small integers: no entry is rounded.

    Each factor has entries ±1 (times i at random when complex) but for a dominant diagonal, 4√rank
    against a norm of about 2√rank for the signs: it has full column rank and κ of a few units.
    Its rows are shuffled, so that elimination has to pivot.
    """

    def factor(rows: int) -> Tensor:
        signs = torch.randint(0, 2, (*_lead(case), rows, rank), generator=generator) * 2 - 1
        entries = signs.to(dtype)
        if dtype.is_complex:
            turned = torch.randint(0, 2, entries.shape, generator=generator, dtype=torch.bool)
            entries = torch.where(turned, entries * 1j, entries)
        entries.diagonal(dim1=-2, dim2=-1).fill_(4 * math.ceil(math.sqrt(rank)))
        return entries[..., torch.randperm(rows, generator=generator), :]

    m, n = case.shape
    return factor(m) @ factor(n).mT
