"""Cases drawn at random, that no grid holds: what a policy is judged on."""

from __future__ import annotations

import math

import numpy as np

from strategies import operations
from strategies.amplification import unit_roundoff
from strategies.measuring.case import DTYPES, Case

LARGEST_WORK = 2**27
"""The most multiplications m n min(m, n) · batch in a case: a second's work for a slow strategy."""

_LARGEST_INPUT = 2**22
_SIDES = (3, 1024)
_BATCHES = (2, 20_000)


def draw_cases(count: int, device: str, seed: int) -> list[Case]:
    """Draws sides, batches and condition numbers log-uniformly.

    Half are single matrices. Condition numbers go as far as a digit is left; one in eight cases of an
    operation that takes any rank has deficient rank instead. Cases too large to be measured in
    seconds are drawn again. Fewer cases of the same seed are the first of more.
    """
    rng = np.random.default_rng(seed)
    names = sorted(operations.measured())
    cases: list[Case] = []
    while len(cases) < count:
        # Every operation has its share, however few cases are drawn.
        case = _draw(rng, operations.get(names[len(cases) % len(names)]), device)
        m, n = case.shape
        entries = m * n * max(case.batch, 1)
        if entries * min(m, n) <= LARGEST_WORK and entries <= _LARGEST_INPUT:
            cases.append(case)
    return cases


def _draw(rng: np.random.Generator, operation: operations.Operation, device: str) -> Case:
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


def _log_uniform(rng: np.random.Generator, ends: tuple[int, int]) -> int:
    low, high = np.log(ends)
    return round(math.exp(rng.uniform(low, high)))
