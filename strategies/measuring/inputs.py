"""Inputs and cotangents of a case, with the condition number, the rank and the sides it asks for."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from strategies import operations
from strategies.accuracy import gallery
from strategies.measuring.rhs_and_cotangents import COTANGENTS, RIGHT_SIDES, normal

if TYPE_CHECKING:
    from strategies.measuring.case import Case


def generator_of(case: Case, stream: int) -> Generator:
    """Random numbers of a case; on the CPU, so that every device sees the same ones."""
    return Generator().manual_seed(2 * case.seed + stream)


@functools.lru_cache(maxsize=4)
def draw(case: Case) -> tuple[Tensor, ...]:
    """A, and B where the operation takes one: see `Case.inputs`."""
    generator = generator_of(case, stream=0)
    dtype = torch.complex128 if case.dtype.is_complex else torch.float64
    if case.matrix is not None:
        matrix = specimen(case).matrix
    elif case.rank is None:
        matrix = _with_condition(case, dtype, generator)
    else:
        matrix = _with_rank(case, case.rank, dtype, generator)
    record = operations.get(case.operation)
    drawn = [record.domain.member(matrix.to(dtype))]
    if record.arity == 2:
        side = normal if case.right_side is None else RIGHT_SIDES[case.right_side]
        drawn.append(side(drawn[0].to(case.dtype).to(dtype), case.rhs, generator))
    return tuple(_rounded(a, case).to(case.device).requires_grad_() for a in drawn)


def cotangents(case: Case, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A cotangent for each output: see `Case.cotangent`. Numbers have a standard normal one."""
    generator = generator_of(case, stream=1)
    return tuple(_cotangent(case, out, generator).to(out.device) for out in outputs)


def _cotangent(case: Case, out: Tensor, generator: Generator) -> Tensor:
    if out.ndim < len(_lead(case)) + 2:
        return torch.randn(out.shape, dtype=out.dtype, generator=generator)
    if case.cotangent is None:
        normal = torch.randn(out.shape, dtype=out.dtype, generator=generator)
        return normal * 2.0**case.scale if case.scale else normal
    A = draw(replace(case, scale=0))[0].detach().cpu()
    A = A.to(torch.complex128 if A.is_complex() else torch.float64)
    # What has the rows of Aᴴ, as X = A⁺B has, is a right-hand side of Aᴴ.
    A = A.mH if out.shape[-2] == A.shape[-1] else A
    if A.shape[-2] != out.shape[-2]:
        raise ValueError(f"{case.operation} has no cotangent named {case.cotangent}")
    return _rounded(COTANGENTS[case.cotangent](A, out.shape[-1], generator), case)


def _rounded(tensor: Tensor, case: Case) -> Tensor:
    """In the case's dtype, then scaled: by halves, since a power of two may itself be out of range."""
    tensor = tensor.to(case.dtype)
    half = case.scale // 2
    return tensor * 2.0**half * 2.0 ** (case.scale - half) if case.scale else tensor


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
    return (left * torch.logspace(half, -half, rank, dtype=torch.float64)) @ right.mH


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
