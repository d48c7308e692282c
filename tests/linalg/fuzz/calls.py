"""What a call consists of, and how one is drawn."""

import dataclasses
import random
from dataclasses import dataclass
from typing import Any

import torch

from strategies import registry

from .operands import FLOATS, OTHERS, Literal, Operand, draw_operand, weighted

LU = ("lu", "lu_factor", "lu_factor_ex")
OPERATIONS = (*LU, "pinv", "lstsq", "solve", "inv", "det", "slogdet")
TWO = ("lstsq", "solve")
SQUARE = ("solve", "inv", "det", "slogdet")
WORDS = ("ff", "fr", "rf", "rr", "frr", "rff")
"""Compositions of forward (f) and reverse mode (r), the outermost first."""
TRACERS = ("jit.trace", "make_fx", "functionalize", "linearize")
MODES = (
    *((22, "plain"), (28, "backward"), (4, "in place"), (5, "input in place")),
    *((5, "no_grad"), (6, "inference"), (7, "jvp"), (8, "vmap"), (4, "subclass")),
    *((3, "zero cotangent"), (3, "zero tangent")),
    *((2, each) for each in (*WORDS, *TRACERS)),
)
"""How a call is made. In place, the results are doubled before the backward, or an operand is; vmap maps
the first dimension of every operand; what a tracer has recorded is called with other numbers."""

_SIZES = (0, 1, 2, 3, 4, 5, 7, 9, 17)
_BATCHES: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (3,), (0,), (2, 3), (1, 3), (3, 1), (2, 0))


@dataclass(frozen=True)
class Call:
    """One call."""

    operation: str
    strategy: str
    operands: tuple[Operand | Literal, ...]
    options: dict[str, Any]
    by_name: bool  # the operands
    mode: str

    @property
    def matrix(self) -> Operand | Literal:
        return self.operands[0]

    @property
    def tensors(self) -> list[Operand]:
        """The operands that are tensors."""
        return [each for each in self.operands if isinstance(each, Operand)]

    def given(self, *names: str) -> list[Any]:
        """The options that are not None."""
        return [value for name in names if (value := self.options.get(name)) is not None]

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
    strategy = "auto" if rng.random() < 0.5 else rng.choice(registry.built_in())
    dtypes = (*FLOATS, rng.choice(OTHERS))
    dtype = weighted(rng, [*zip((40, 22, 15, 15, 8), dtypes, strict=True)])
    batch, m, n = rng.choice(_BATCHES), rng.choice(_SIZES), rng.choice(_SIZES)
    if rng.random() < (0.93 if operation in SQUARE else 0.3):
        n = m
    mode = weighted(rng, MODES)
    if mode == "vmap" and not batch:
        batch = (3,)
    A = draw_operand(rng, (*batch, m, n), dtype)
    if rng.random() < 0.01:
        A = draw_operand(rng, (m,), dtype)
    operands: list[Operand | Literal] = [A]
    if operation in TWO:
        B_dtype = dtype if rng.random() < 0.97 else rng.choice(FLOATS)
        values = "ordinary" if rng.random() < 0.85 else None
        operands.append(draw_operand(rng, _rhs_shape(rng, batch, m), B_dtype, values))
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


def _rhs_shape(rng: random.Random, batch: tuple[int, ...], m: int) -> tuple[int, ...]:
    k = rng.choice((0, 1, 1, 2, 3, 5))
    shapes: list[tuple[float, tuple[int, ...]]] = [
        (60, (*batch, m, k)),
        (5, (m,)),
        (10, (*batch, m)),
        (8, (*rng.choice(_BATCHES), m, k)),
        (6, (*[1] * len(batch), m, k)),
        (3, (*batch, m + 1, k)),
        (8, (m, k)),
    ]
    return weighted(rng, shapes)


_PIVOT = {"pivot": (0.05, (True, False))}
_OPTIONS: dict[str, dict[str, tuple[float, tuple[Any, ...]]]] = {
    "lu": _PIVOT,
    "lu_factor": _PIVOT,
    "lu_factor_ex": _PIVOT | {"check_errors": (0.3, (True, False))},
    "pinv": {"hermitian": (0.12, (True, True, False))},
    "lstsq": {
        "rcond": (0.15, (None, 1e-3, 0.0, -1.0, float("nan"), 2.0, "x")),
        "driver": (0.08, ("gels", "gelsy", "gelsd", "gelss", "xyz", None)),
    },
    "solve": {"left": (0.2, (False, False, True))},
}
"""With what probability an option is given, and its values."""


def _options(rng: random.Random, operation: str, batch: tuple[int, ...]) -> dict[str, Any]:
    if rng.random() < 0.02:
        return rng.choice(({"nonsense": 1}, {"out": torch.empty(0)}, {"rcond": 1e-3}))
    found: dict[str, Any] = {"out": None} if rng.random() < 0.03 else {}
    if operation == "pinv":
        found |= {name: _tolerance(rng, batch) for name in ("rtol", "atol") if rng.random() < 0.12}
    for name, (probability, values) in _OPTIONS.get(operation, {}).items():
        if rng.random() < probability:
            found[name] = rng.choice(values)
    return found


def _tolerance(rng: random.Random, batch: tuple[int, ...]) -> Any:
    number = rng.choice((1e-6, 1e-3, 0.0, 0.2, 2.0, -1.0, float("nan")))
    wrong = rng.choice((torch.full((7,), number), torch.tensor(1j)))
    batched = torch.full(batch, number)
    return weighted(
        rng, [(70, number), (10, torch.tensor(number)), (12, batched), (4, wrong), (4, "small")]
    )
