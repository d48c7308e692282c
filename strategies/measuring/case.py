"""A case: one operation on inputs that a seed determines, with the condition or rank that it asks for."""

import functools
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Generator, Tensor

from strategies import operations
from strategies.accuracy import gallery
from strategies.measuring.rhs_and_cotangents import COTANGENTS, RIGHT_SIDES, normal

DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "complex64", "complex128")}
"""The dtypes that are measured, by name."""

_COLUMNS = (
    *("operation", "m", "n", "rhs", "rank", "log10_cond", "matrix"),
    *("right_side", "cotangent", "scale", "batch", "dtype", "device", "seed"),
)
_MOST_ENTRIES = 2**40
_LARGEST_LOG10_COND = 300.0
_LARGEST_SCALE = 1074


@dataclass(frozen=True)
class Case:
    """What is asked of an operation: everything but the strategy that answers.

    Attributes:
        shape: rows and columns of each matrix.
        batch: number of matrices; 0 means one matrix without a batch dimension.
        device: cpu, cuda, cuda:0, ...
        rhs: columns of B, for operations that take one.
        log10_cond: log₁₀ of the 2-norm condition number κ; None stands for κ = 10.
        rank: rank of each matrix, exact in `dtype`; None means full rank. An exactly
            rank-deficient matrix is well conditioned on its range, so `log10_cond` must be None.
        matrix: a name of `strategies.accuracy.gallery`, which then says what A is instead.
        right_side: a name of `RIGHT_SIDES` in `strategies.measuring.rhs_and_cotangents` for B; None is
            standard normal.
        cotangent: a name of `COTANGENTS` there for those outputs that are matrices; None likewise.
        scale: A, B and cotangents that are matrices are multiplied by 2^scale.
        seed: determines all entries. Equal cases have equal inputs on one machine, by as
            many threads.

    Raises:
        ValueError: for an unknown operation, dtype, device or matrix, for sizes that the operation
            cannot take or no machine can hold, or attributes that contradict each other.

    Example:
        >>> case = Case("pinv", (4096, 32))
        >>> str(case)
        'pinv 4096x32 float64 cpu'
        >>> Case.parse("pinv 4096x32") == case
        True
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
    right_side: str | None = None
    cotangent: str | None = None
    scale: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        record = operations.get(self.operation)
        m, n = self.shape
        if min(m, n, self.rhs) < 1 or self.batch < 0:
            raise ValueError(f"{self}: rows, columns and right-hand sides are counted from 1")
        if max(self.batch, 1) * m * max(n, self.rhs) > _MOST_ENTRIES:
            raise ValueError(f"{self}: no machine holds a matrix of that size")
        if record.square and m != n:
            raise ValueError(f"{self.operation} needs a square matrix, got {m}x{n}")
        if record.arity == 1 and self.rhs != 1:
            raise ValueError(f"{self.operation} takes no right-hand side, got k={self.rhs}")
        _dtype(self.dtype_name)
        if not re.fullmatch(r"(cpu|cuda)(:\d{1,2})?", self.device):
            raise ValueError(f"unknown device {self.device!r}; known: cpu, cuda, cuda:0, ...")
        if [self.rank, self.log10_cond, self.matrix].count(None) < 2:
            raise ValueError(f"{self}: give only one of rank, log10_cond and matrix")
        if self.rank is not None and not 0 <= self.rank <= min(m, n):
            raise ValueError(f"rank {self.rank} is impossible for a {m}x{n} matrix")
        if self.log10_cond is not None and not 0 <= self.log10_cond <= _LARGEST_LOG10_COND:
            raise ValueError(f"a condition number of 10^{self.log10_cond} is impossible")
        if self.matrix is not None and self.matrix not in gallery.names():
            raise ValueError(f"unknown matrix {self.matrix!r}; known: {', '.join(gallery.names())}")
        if self.right_side is not None and record.arity == 1:
            raise ValueError(f"{self.operation} takes no right-hand side, got B={self.right_side}")
        for side, known in ((self.right_side, RIGHT_SIDES), (self.cotangent, COTANGENTS)):
            if side is not None and side not in known:
                raise ValueError(f"{side!r} is none of {', '.join(known)}")
        if abs(self.scale) > _LARGEST_SCALE:
            raise ValueError(f"no dtype holds 2^{self.scale}")
        if not 0 <= self.seed < 2**62:
            raise ValueError(f"a seed is between 0 and 2**62, not {self.seed}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The case that `str` writes so; what is left out has its default. ValueError says what is wrong.

        Example:
            >>> Case.parse("lstsq 1000x16x4 k=16 rank=2 float32").batch
            1000
        """
        found = re.fullmatch(r"(\S+)\s+(?:(\d+)x)?(\d+)x(\d+)(|\s.*)", text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no case, as 'inv 4x4' or 'pinv 100x8x4' is")
        operation, batch, m, n, words = found.groups()
        options = dict(map(_option, words.split()))
        return cls(operation, (int(m), int(n)), int(batch or 0), **options)

    def __str__(self) -> str:
        """The case in one line, without what is at its default."""
        dims = "x".join(map(str, (self.batch, *self.shape) if self.batch else self.shape))
        words = [self.operation, dims, *self._options(), self.dtype_name, self.device]
        return " ".join([*words, f"seed={self.seed}"] if self.seed else words)

    @property
    def sizes(self) -> str:
        """The sizes and what is special about the matrices, as "1000 of 16x4 k=16 rank=2"."""
        m, n = self.shape
        count = f"{self.batch} of " if self.batch else ""
        return " ".join([f"{count}{m}x{n}", *self._options()])

    def columns(self) -> dict[str, Any]:
        """The case as plain values, for tables and JSON; None for what is not given."""
        m, n = self.shape
        values = {**vars(self), "m": m, "n": n, "dtype": self.dtype_name}
        return {name: values[name] for name in _COLUMNS}

    @property
    def dtype_name(self) -> str:
        """The dtype as text: "float64"."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def device_kind(self) -> str:
        """The device without its index: "cuda"."""
        return self.device.partition(":")[0]

    @property
    def work(self) -> int:
        """What a factorization multiplies, but for a factor: m n min(m, n) of all matrices."""
        return math.prod(self.shape) * min(self.shape) * max(self.batch, 1)

    def _options(self) -> list[str]:
        digits = None if self.log10_cond is None else str(self.log10_cond)
        values = {
            "k": self.rhs if self.rhs != 1 else None,
            "cond": digits and f"1e{digits.removesuffix('.0')}",
            "rank": self.rank,
            "matrix": self.matrix,
            "B": self.right_side,
            "G": self.cotangent,
            "scale": f"2^{self.scale}" if self.scale else None,
        }
        return [f"{name}={value}" for name, value in values.items() if value is not None]

    @property
    def known_rank(self) -> int | None:
        """The exact rank of every matrix; None means full."""
        return self.rank if self.matrix is None else specimen(self).rank

    def inputs(self) -> tuple[Tensor, ...]:
        """A, and B where the operation takes one: leaves that require a gradient.

        Strategies compared on one case share them: treat them as read-only.
        """
        return _inputs(self)

    def cotangents(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """A cotangent for each output, of its shape, dtype and device; a number has a normal one."""
        generator = _generator(self, stream=1)
        return tuple(_cotangent(self, out, generator).to(out.device) for out in outputs)


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise ValueError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
    return DTYPES[name]


_OPTION = re.compile(
    r"k=(?P<rhs>\d+)|rank=(?P<rank>\d+)|seed=(?P<seed>\d+)|matrix=(?P<matrix>.+)"
    r"|B=(?P<right_side>.+)|G=(?P<cotangent>.+)|scale=2\^(?P<scale>-?\d{1,4})"
    r"|cond=1e(?P<log10_cond>-?\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<device>c(?:pu|uda).*)|(?P<dtype>[^=]+)"
)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("matrix", "right_side", "cotangent", "device"), str),
    "log10_cond": float,
    "dtype": _dtype,
}


def _option(word: str) -> tuple[str, Any]:
    """The attribute that `str` writes as this word, and its value."""
    found = _OPTION.fullmatch(word)
    if found is None or found.lastgroup is None:
        raise ValueError(f"{word} is not one of k=4, cond=1e3, rank=2, matrix=kahan, seed=1")
    return found.lastgroup, _KINDS.get(found.lastgroup, int)(found[found.lastgroup])


def specimen(case: Case) -> gallery.Specimen:
    """The matrix of the gallery that a case names, with what is known of it."""
    assert case.matrix is not None
    return gallery.make(case.matrix, case.shape, case.dtype, _lead(case), case.seed)


def _lead(case: Case) -> tuple[int, ...]:
    return (case.batch,) if case.batch else ()


def _generator(case: Case, stream: int) -> Generator:
    """On the CPU, so that every device sees the same numbers."""
    return Generator().manual_seed(2 * case.seed + stream)


@functools.lru_cache(maxsize=4)
def _inputs(case: Case) -> tuple[Tensor, ...]:
    generator = _generator(case, stream=0)
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


def _cotangent(case: Case, out: Tensor, generator: Generator) -> Tensor:
    if out.ndim < len(_lead(case)) + 2:
        return torch.randn(out.shape, dtype=out.dtype, generator=generator)
    if case.cotangent is None:
        normal = torch.randn(out.shape, dtype=out.dtype, generator=generator)
        return _scaled(normal, case.scale)
    A = _inputs(replace(case, scale=0))[0].detach().cpu()
    A = A.to(torch.complex128 if A.is_complex() else torch.float64)
    # What has the rows of Aᴴ, as X = A⁺B has, is a right-hand side of Aᴴ.
    A = A.mH if out.shape[-2] == A.shape[-1] else A
    if A.shape[-2] != out.shape[-2]:
        raise ValueError(f"{case.operation} has no cotangent named {case.cotangent}")
    return _rounded(COTANGENTS[case.cotangent](A, out.shape[-1], generator), case)


def _rounded(tensor: Tensor, case: Case) -> Tensor:
    return _scaled(tensor.to(case.dtype), case.scale)


def _scaled(tensor: Tensor, exponent: int) -> Tensor:
    """Times two to that power: by halves, since the power may itself be out of range."""
    half = exponent // 2
    return tensor * 2.0**half * 2.0 ** (exponent - half) if exponent else tensor


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
