"""What a call consists of, and how one is drawn."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import Any

import torch

from .operands import FLOATS, OTHERS, Literal, Operand, draw_operand

OPERATIONS = (
    *("lu", "lu_factor", "lu_factor_ex", "pinv", "lstsq", "solve", "inv", "det", "slogdet"),
)
TWO = ("lstsq", "solve")
SQUARE = ("solve", "inv", "det", "slogdet")
BUILT_IN = (
    *("native", "triangular_solve", "explicit_inverse", "qr_pinv", "svd_truncated_pinv"),
    *("blocked_lu", "batch_last", "fused"),
)
WORDS = ("ff", "fr", "rf", "rr", "frr", "rff")
"""Compositions of forward (f) and reverse mode (r), the outermost first."""
TRACERS = ("jit.trace", "make_fx", "functionalize", "linearize")
MODES = (
    *("plain", "backward", "in place", "no_grad", "inference", "jvp", "vmap"),
    *("input in place", "zero cotangent", "zero tangent", "subclass"),
    *WORDS,
    *TRACERS,
)
"""How a call is made. In place, the results are doubled before the backward, or an operand is; vmap maps
the first dimension of every operand; what a tracer has recorded is called with other numbers."""
_WEIGHTS = (22, 28, 4, 5, 6, 7, 8, 5, 3, 3, 4, *[2] * len(WORDS), *[2] * len(TRACERS))

_SIZES = (0, 1, 2, 3, 4, 5, 7, 9, 17)
_BATCHES: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (3,), (0,), (2, 3), (1, 3), (3, 1), (2, 0))


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        operation: its name in torch.linalg.
        strategy: what `strategy=` is.
        operands: A, and B where there is one.
        options: the other arguments.
        by_name: whether the operands are given by name.
        mode: one of `MODES`.
    """

    operation: str
    strategy: str
    operands: tuple[Operand | Literal, ...]
    options: dict[str, Any]
    by_name: bool
    mode: str

    @property
    def matrix(self) -> Operand | Literal:
        return self.operands[0]

    @property
    def tensors(self) -> list[Operand]:
        """The operands that are tensors."""
        return [each for each in self.operands if isinstance(each, Operand)]

    def __str__(self) -> str:
        names = [f"{name}=" if self.by_name else "" for name in "AB"]
        words = [f"{name}<{each}>" for name, each in zip(names, self.operands, strict=False)]
        words += [f"{name}={value!r}" for name, value in self.options.items()]
        return (
            f"{self.operation}({', '.join([*words, f'strategy={self.strategy!r}'])}), {self.mode}"
        )


def draw(seed: int, number: int) -> Call:
    """The call of that number."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311 - tests need no secrets
    operation = rng.choice(OPERATIONS)
    strategy = "auto" if rng.random() < 0.5 else rng.choice(BUILT_IN)
    dtype = rng.choices((*FLOATS, rng.choice(OTHERS)), (40, 22, 15, 15, 8))[0]
    batch, m, n = rng.choice(_BATCHES), rng.choice(_SIZES), rng.choice(_SIZES)
    if rng.random() < (0.93 if operation in SQUARE else 0.3):
        n = m
    mode = rng.choices(MODES, _WEIGHTS)[0]
    if mode == "vmap" and not batch:
        batch = (3,)
    A = draw_operand(rng, (*batch, m, n), dtype)
    if rng.random() < 0.01:
        A = draw_operand(rng, (m,), dtype)
    operands: list[Operand | Literal] = [A]
    if operation in TWO:
        B_dtype = dtype if rng.random() < 0.97 else rng.choice(FLOATS)
        values = "ordinary" if rng.random() < 0.85 else None
        operands.append(draw_operand(rng, _rhs_shape(rng, operation, batch, m), B_dtype, values))
    if rng.random() < 0.01:
        place = rng.randrange(len(operands))
        operands[place] = Literal(rng.choice((None, 3.0, [[1.0]], "A")))
    by_name = rng.random() < 0.15
    options = _options(rng, operation, batch)
    if options.get("hermitian") and A.base.ndim > 1 and m == n and rng.random() < 0.8:
        operands[0] = dataclasses.replace(A, base=A.base + A.base.mH, values="Hermitian")
    if options.get("out") is not None and mode in (*TRACERS, *WORDS):
        mode = "plain"  # they have their own view of what is written to
    if mode in WORDS and A.values in ("huge", "tiny"):
        mode = "backward"  # what is small beside 1/‖A‖³ is no error there, and is beside one
    last = operands[-1]
    if isinstance(last, Operand) and 0 in last.shape:
        options.pop("driver", None)  # PyTorch 2.13 crashes, by gelss
    return Call(operation, strategy, tuple(operands), options, by_name, mode)


def _rhs_shape(
    rng: random.Random, operation: str, batch: tuple[int, ...], m: int
) -> tuple[int, ...]:
    k = rng.choice((0, 1, 1, 2, 3, 5))
    kind = rng.choices(
        ("matrix", "vector", "vectors", "other batch", "ones", "wrong", "unbatched"),
        (60, 5, 10, 8, 6, 3, 8),
    )[0]
    match kind:
        case "vector":
            return (m,)
        case "vectors":
            return (*batch, m)
        case "other batch":
            return (*rng.choice(_BATCHES), m, k)
        case "ones":
            return (*[1] * len(batch), m, k)
        case "wrong":
            return (*batch, m + 1, k)
        case "unbatched":
            return (m, k)
    return (*batch, m, k)


def _options(rng: random.Random, operation: str, batch: tuple[int, ...]) -> dict[str, Any]:
    if rng.random() < 0.02:
        return rng.choice(({"nonsense": 1}, {"out": torch.empty(0)}, {"rcond": 1e-3}))
    found: dict[str, Any] = {"out": None} if rng.random() < 0.03 else {}
    match operation:
        case "lu" | "lu_factor" | "lu_factor_ex":
            if rng.random() < 0.05:
                found["pivot"] = rng.choice((True, False))
            if operation == "lu_factor_ex" and rng.random() < 0.3:
                found["check_errors"] = rng.choice((True, False))
        case "pinv":
            for name in ("rtol", "atol"):
                if rng.random() < 0.12:
                    found[name] = _tolerance(rng, batch)
            if rng.random() < 0.12:
                found["hermitian"] = rng.choice((True, True, False))
        case "lstsq":
            if rng.random() < 0.15:
                found["rcond"] = rng.choice((None, 1e-3, 0.0, -1.0, float("nan"), 2.0, "x"))
            if rng.random() < 0.08:
                found["driver"] = rng.choice(("gels", "gelsy", "gelsd", "gelss", "xyz", None))
        case "solve":
            if rng.random() < 0.2:
                found["left"] = rng.choice((False, False, True))
    return found


def _tolerance(rng: random.Random, batch: tuple[int, ...]) -> Any:
    number = rng.choice((1e-6, 1e-3, 0.0, 0.2, 2.0, -1.0, float("nan")))
    kind = rng.choices(("number", "tensor", "batch", "wrong", "text"), (70, 10, 12, 4, 4))[0]
    match kind:
        case "tensor":
            return torch.tensor(number)
        case "batch":
            return torch.full(batch, number)
        case "wrong":
            return rng.choice((torch.full((7,), number), torch.tensor(1j)))
        case "text":
            return "small"
    return number
