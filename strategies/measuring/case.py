"""A case: one operation on inputs that a seed determines."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.accuracy import gallery

OPERATIONS = ("lu_factor", "lu", "pinv", "lstsq", "solve", "inv", "det", "slogdet")
WITH_RIGHT_HAND_SIDE = frozenset({"lstsq", "solve"})
SQUARE_ONLY = frozenset({"solve", "inv", "det", "slogdet"})


@dataclass(frozen=True)
class Case:
    """What is asked of an operation: everything but the strategy that answers.

    Attributes:
        operation: a name of `torch.linalg`, one of `OPERATIONS`.
        shape: rows and columns of each matrix.
        batch: number of matrices; 0 means one matrix without a batch dimension.
        dtype: float32, float64, complex64 or complex128.
        device: where the inputs live, as `torch.device` writes it.
        rhs: columns of B, for `lstsq` and `solve`.
        log10_cond: log₁₀ of the 2-norm condition number κ; None stands for κ = 10.
        rank: rank of each matrix, exact in `dtype`; None means full rank. An exactly
            rank-deficient matrix is well conditioned on its range, so `log10_cond` must be None.
        matrix: a name of `strategies.accuracy.gallery`, which then says what A is instead.
        seed: determines all entries. Equal cases have equal inputs on one machine.

    Raises:
        ValueError: for an unknown operation, a shape that the operation cannot take, or
            attributes that contradict each other.

    Example:
        >>> case = Case("pinv", (4096, 32))
        >>> case.label
        'pinv 4096x32 float64 cpu'
        >>> [tuple(a.shape) for a in Case("lstsq", (6, 3), batch=5, rhs=2).inputs()]
        [(5, 6, 3), (5, 6, 2)]
    """

    operation: str
    shape: tuple[int, int]
    batch: int = 0
    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    rhs: int = 1
    log10_cond: float | None = None
    rank: int | None = None
    matrix: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(
                f"unknown operation {self.operation!r}; known: {', '.join(OPERATIONS)}"
            )
        m, n = self.shape
        if self.operation in SQUARE_ONLY and m != n:
            raise ValueError(f"{self.operation} needs a square matrix, got {m}x{n}")
        if [self.rank, self.log10_cond, self.matrix].count(None) < 2:
            raise ValueError("give only one of rank, log10_cond and matrix")
        if self.rank is not None and not 0 <= self.rank <= min(m, n):
            raise ValueError(f"rank {self.rank} is impossible for a {m}x{n} matrix")
        if self.matrix is not None and self.matrix not in gallery.names():
            raise ValueError(f"unknown matrix {self.matrix!r}; known: {', '.join(gallery.names())}")

    @property
    def label(self) -> str:
        """The case in one line, without what is at its default."""
        dims = ([self.batch] if self.batch else []) + list(self.shape)
        words = [self.operation, "x".join(map(str, dims))]
        if self.operation in WITH_RIGHT_HAND_SIDE and self.rhs != 1:
            words.append(f"k={self.rhs}")
        if self.log10_cond is not None:
            words.append(f"cond=1e{self.log10_cond:g}")
        if self.rank is not None:
            words.append(f"rank={self.rank}")
        if self.matrix is not None:
            words.append(f"matrix={self.matrix}")
        return " ".join([*words, str(self.dtype).removeprefix("torch."), self.device])

    @property
    def known_rank(self) -> int | None:
        """The exact rank of every matrix; None means full."""
        return self.rank if self.matrix is None else _specimen(self).rank

    def inputs(self) -> tuple[Tensor, ...]:
        """A, and B where the operation takes one: leaves that require a gradient.

        The latest case's tensors are kept, so that strategies compared on one case share
        them: treat them as read-only.
        """
        return _draw_inputs(self)

    def cotangents(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """A standard normal cotangent for each output, of its shape, dtype and device."""
        generator = self._generator(stream=1)
        return tuple(
            torch.randn(out.shape, dtype=out.dtype, generator=generator).to(out.device)
            for out in outputs
        )

    def _generator(self, stream: int) -> torch.Generator:
        # On the CPU, whatever the device: every device sees the same numbers.
        return torch.Generator().manual_seed(2 * self.seed + stream)


@functools.lru_cache(maxsize=1)
def _draw_inputs(case: Case) -> tuple[Tensor, ...]:
    generator = case._generator(stream=0)
    wide = torch.complex128 if case.dtype.is_complex else torch.float64
    lead = (case.batch,) if case.batch else ()
    m, n = case.shape
    if case.matrix is not None:
        drawn = [_specimen(case).matrix]
    elif case.rank is None:
        log10_cond = 1.0 if case.log10_cond is None else case.log10_cond
        drawn = [_with_condition(lead, m, n, log10_cond, wide, generator)]
    else:
        drawn = [_with_rank(lead, m, n, case.rank, wide, generator)]
    if case.operation in WITH_RIGHT_HAND_SIDE:
        drawn.append(torch.randn(*lead, m, case.rhs, dtype=wide, generator=generator))
    return tuple(a.to(case.device, case.dtype).requires_grad_() for a in drawn)


def _specimen(case: Case) -> gallery.Specimen:
    assert case.matrix is not None
    lead = (case.batch,) if case.batch else ()
    return gallery.make(case.matrix, case.shape, case.dtype, lead, case.seed)


def _with_condition(
    lead: tuple[int, ...],
    m: int,
    n: int,
    log10_cond: float,
    dtype: torch.dtype,
    generator: torch.Generator,
) -> Tensor:
    """Random singular vectors, log-spaced singular values from √κ to 1/√κ.

    Their geometric mean is one, so that determinants neither overflow nor vanish.
    """
    r = min(m, n)
    left, _ = torch.linalg.qr(torch.randn(*lead, m, r, dtype=dtype, generator=generator))
    right, _ = torch.linalg.qr(torch.randn(*lead, n, r, dtype=dtype, generator=generator))
    half = log10_cond / 2
    sigma = torch.logspace(half, -half, r, dtype=torch.float64)
    matrix: Tensor = (left * sigma) @ right.mH
    return matrix


def _with_rank(
    lead: tuple[int, ...],
    m: int,
    n: int,
    rank: int,
    dtype: torch.dtype,
    generator: torch.Generator,
) -> Tensor:
    """X Yᵀ of two m×rank and n×rank factors of small integers: no entry is rounded.

    Each factor has entries ±1 (times i at random when complex) but for a dominant diagonal, 4√rank
    against a norm of about 2√rank for the signs: it has full column rank and κ of a few units.
    Its rows are shuffled, so that elimination has to pivot.
    """

    def factor(rows: int) -> Tensor:
        signs = torch.randint(0, 2, (*lead, rows, rank), generator=generator) * 2 - 1
        entries = signs.to(dtype)
        if dtype.is_complex:
            turned = torch.randint(0, 2, entries.shape, generator=generator, dtype=torch.bool)
            entries = torch.where(turned, entries * 1j, entries)
        entries.diagonal(dim1=-2, dim2=-1).fill_(4 * math.ceil(math.sqrt(rank)))
        return entries[..., torch.randperm(rows, generator=generator), :]

    return factor(m) @ factor(n).mT
