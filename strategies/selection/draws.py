"""Cases drawn at random, that no grid holds: what a policy is judged on."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, default_rng

from strategies import operations
from strategies.accuracy import gallery
from strategies.formulas.amplification import unit_roundoff
from strategies.measuring.case import DTYPES, Case, specimen
from strategies.measuring.rhs_and_cotangents import COTANGENTS, RIGHT_SIDES

LARGEST_WORK = 2**27
"""The most multiplications m n min(m, n) · batch in a case: a second's work for a slow strategy."""

_LARGEST_INPUT = 2**22
_SIDES = (3, 1024)
_BATCHES = (2, 20_000)
_LARGEST_SIDE_OF_BATCH = 64
_ATTEMPTS = 20
"""Draws of a kind of matrix, of which most may be too ill-conditioned for an operation, or deficient."""


def draw_cases(count: int, device: str, seed: int) -> list[Case]:
    """Draws sides, batches and condition numbers log-uniformly.

    Half are single matrices. Condition numbers go as far as a digit is left; one in eight cases of an
    operation that takes any rank has deficient rank instead. Cases too large to be measured in
    seconds are drawn again. Fewer cases of the same seed are the first of more.
    """
    rng = default_rng(seed)
    names = sorted(operations.measured())
    cases: list[Case] = []
    while len(cases) < count:
        # Every operation has its share, however few cases are drawn.
        case = _draw(rng, operations.get(names[len(cases) % len(names)]), device)
        if case.work <= LARGEST_WORK and case.work // min(case.shape) <= _LARGEST_INPUT:
            cases.append(case)
    return cases


def _draw(rng: Generator, operation: operations.Operation, device: str) -> Case:
    m = _log_uniform(rng, _SIDES)
    n = m if operation.square or rng.random() < 0.3 else _log_uniform(rng, _SIDES)
    if operation.truncates:
        # Tall is what they are for.
        m, n = max(m, n), min(m, n)
    dtype = DTYPES[str(rng.choice(["float32", "float64"]))]
    batch = 0 if rng.random() < 0.5 else _log_uniform(rng, _BATCHES)
    rhs = _log_uniform(rng, (1, 32)) if operation.arity == 2 else 1
    deficient = operation.truncates and rng.random() < 1 / 8
    # 0.01 / u; or a tenth of where truncation begins, beyond which the gradient asked for is that of
    # a matrix of lower rank.
    largest = 1 / (unit_roundoff(dtype) * max(100, 20 * m if operation.truncates else 1))
    # Digits of the condition number beyond three are noise, and hard to read.
    log10_cond = None if deficient else round(rng.uniform(0.3, math.log10(largest)), 3)
    rank = max(1, min(m, n) // 2) if deficient else None
    seed = int(rng.integers(2**31))
    return Case(operation.name, (m, n), batch, dtype, device, rhs, log10_cond, rank, seed=seed)


def hard_cases(
    device: str, seed: int, names: Sequence[str] = (), dtypes: Sequence[str] = tuple(DTYPES)
) -> Iterator[Case]:
    """Draws cases in which an unstable algorithm fails, without end: what stability is judged on.

    Small matrices, one in eight larger; single ones and batches; condition numbers as far as a digit is
    left, every matrix of the gallery, exact deficiency; hard right-hand sides and cotangents; half scaled
    by a power of two that the result allows. Operations, all by default, and dtypes are taken alternately.
    """
    rng = default_rng([seed, 1])
    kinds = [(name, DTYPES[dtype]) for dtype in dtypes for name in names or operations.names()]
    for matrix in itertools.cycle([*gallery.names(), *["random", "deficient", "random"] * 6]):
        for name, dtype in kinds:
            for _ in range(_ATTEMPTS):
                case = _draw_hard(rng, operations.get(name), dtype, device, matrix)
                if case is not None:
                    yield case
                    break


def _draw_hard(
    rng: Generator, operation: operations.Operation, dtype: torch.dtype, device: str, matrix: str
) -> Case | None:
    sides = (1, 100) if rng.random() < 1 / 8 else (1, 40)
    m, n = _log_uniform(rng, sides), _log_uniform(rng, sides)
    if operation.square or rng.random() < 0.3:
        n = m
    is_single = rng.random() < 0.6 or max(m, n) > _LARGEST_SIDE_OF_BATCH
    case = Case(
        operation.name,
        (m, n),
        0 if is_single else _log_uniform(rng, (2, 40)),
        dtype,
        device,
        rhs=_log_uniform(rng, (1, 8)) if operation.arity == 2 else 1,
        right_side=_maybe(rng, RIGHT_SIDES) if operation.arity == 2 else None,
        cotangent=_maybe(rng, COTANGENTS) if _returns_matrix(operation) else None,
        seed=int(rng.integers(2**31)),
        **_hard_matrix(rng, dtype, min(m, n), matrix),
    )
    condition = 10.0 ** (case.log10_cond or 1.0)
    try:
        condition = specimen(case).condition if case.matrix else condition
    except ValueError:
        return None
    # Beyond, what rounding leaves of a zero singular value is as large, and no rank is right.
    has_rank = operation.truncates or operation.pivoted
    if has_rank and condition * unit_roundoff(dtype) * 40 * max(m, n) > 1:
        return None
    if operation.needs_full_rank and case.known_rank not in (None, min(m, n)):
        return None
    is_at_an_end = matrix.startswith("near_")  # of the range: beyond are no normal numbers
    scale = _scale(rng, case, condition) if rng.random() < 0.5 and not is_at_an_end else 0
    return replace(case, scale=scale)


def _hard_matrix(rng: Generator, dtype: torch.dtype, most: int, matrix: str) -> dict[str, Any]:
    if matrix == "deficient":
        return {"rank": int(rng.integers(0, most + 1))}
    if matrix == "random":
        return {"log10_cond": round(rng.uniform(0.3, -math.log10(unit_roundoff(dtype))), 3)}
    return {"matrix": matrix}


def _maybe(rng: Generator, names: Iterable[str]) -> str | None:
    return str(rng.choice(list(names))) if rng.random() < 0.75 else None


def _scale(rng: Generator, case: Case, condition: float) -> int:
    """A power of two up to which the gradient, of the order of κ²/scale, stays in range.

    That of a determinant is of the order of scale^(n−1).
    """
    largest = math.log2(torch.finfo(case.dtype).max)
    digits = -math.log2(unit_roundoff(case.dtype))
    headroom = 2 * math.log2(condition) + 2 * math.log2(max(case.shape)) + digits
    depth = 1 if _returns_matrix(operations.get(case.operation)) else case.shape[1]
    most = int(max(largest - headroom, 0) / depth)
    return int(rng.integers(-most, most + 1))


def _returns_matrix(operation: operations.Operation) -> bool:
    return len(operation.output_shapes(*[(1, 1)] * operation.arity)[0]) == 2


def _log_uniform(rng: Generator, ends: tuple[int, int]) -> int:
    low, high = np.log(ends)
    return round(math.exp(rng.uniform(low, high)))
