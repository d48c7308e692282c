"""The oracle set as text: JSON Lines, one case a line, every number a hexadecimal float.

A number is as C's `strtod` and Python's `float.fromhex` read it, rounded correctly to what they hold.
Certified ones have more digits than that: 73 bits.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from strategies import operations
from strategies.accuracy.stability import LIMIT, Exact
from strategies.oracle.draws import KINDS, Draw, candidates
from strategies.oracle.grader import flat
from strategies.oracle.truth import condition, truth

_BITS = 73
_SHORT = 8


class Array(msgspec.Struct, kw_only=True):
    """Numbers in rows.

    Attributes:
        shape: as the operation takes and returns it, batch first; [] is a number.
        numbers: row by row, separated by spaces; of a complex one the real part, then the imaginary part.
    """

    shape: list[int]
    numbers: str


class Certified(Array, kw_only=True):
    """A result with the proof of its error, and what an error is divided by.

    Attributes:
        radius: the error of each matrix is below 2^radius of its Frobenius norm.
        divisors: for each matrix the Frobenius norm by which one rounding of the inputs moves it. The
            stability ratio is that of the error over this.
    """

    radius: int
    divisors: list[str]


class CaseRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One case.

    Attributes:
        id: operation/kind/number.
        operation: a name of `strategies.operations`.
        kind: plain, hard, deficient, scaled, complex or batched.
        about: what the matrices, sides and directions are.
        dtype: float32, float64, complex64 or complex128: that of the computation.
        ranks: the exact rank of A, of each matrix of the batch.
        conditions: ‖A‖ ‖A⁺‖ in Frobenius norms, likewise.
        orders: where in A the pivoted rows come from, counted from 0; of LU alone.
        inputs: A, and B where the operation takes one.
        cotangents: G of each differentiable output.
        tangents: a direction of each input.
        results: for value, vjp, jvp and hvp the certified matrices. The Hessian–vector product is the
            derivative of the VJP along the tangents. One that cannot be judged is left out.
    """

    id: str
    operation: str
    kind: str
    about: str
    dtype: str
    ranks: list[int]
    conditions: list[float]
    orders: list[list[int]] | None = None
    inputs: list[Array]
    cotangents: list[Array]
    tangents: list[Array]
    results: dict[str, list[Certified]]


class Header(msgspec.Struct, kw_only=True):
    """The first line of a set."""

    format: str = "gradient-oracle"
    version: int = 1
    seed: int
    cases: int
    """Of each operation and kind, how many were drawn."""
    limit: float = LIMIT
    """A stability ratio above it is not right."""


def records(count: int, seed: int) -> Iterator[CaseRecord | None]:
    """The cases of a set, the first of more those of fewer; None where no draw of a kind can be judged."""
    for number, kind, name in itertools.product(range(count), KINDS, operations.names()):
        yield first_judged(candidates(name, kind, number, seed))


def first_judged(draws: Iterable[Draw]) -> CaseRecord | None:
    """The case of the first draw that can be judged, if there is one."""
    return next(filter(None, map(_judged, draws)), None)


def text(lines: Iterable[Header | CaseRecord]) -> str:
    """The lines of a set, each with its end."""
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def schema() -> dict[str, Any]:
    """JSON Schema of a case."""
    return msgspec.json.schema(CaseRecord)


def number(high: float, low: float = 0.0, exponent: int = 0) -> str:
    """(high + low) 2^exponent as a hexadecimal float, rounded to 73 bits.

    Example:
        >>> number(1.5, 2.0**-60), number(-3.0, exponent=-2000)
        ('0x1.800000000000001p+0', '-0x1.8p-1999')
    """
    exact = Fraction(high) + Fraction(low)
    if not exact:
        return "0x0p+0"
    power = exact.numerator.bit_length() - exact.denominator.bit_length()
    # 2^72 times a number from 1 to 2, both included.
    mantissa = round(abs(exact) * Fraction(2) ** (_BITS - 1 - power))
    excess = mantissa >> _BITS
    fraction = f"{mantissa >> excess:x}"[1:].rstrip("0")
    point = f".{fraction}" if fraction else ""
    return f"{'-' if exact < 0 else ''}0x1{point}p{exponent + power + excess:+d}"


def _judged(draw: Draw) -> CaseRecord | None:
    try:
        found = truth(draw)
        conditions = [condition(draw, i) for i in range(len(draw.ranks))]
    except (ArithmeticError, ValueError):
        return None
    if "vjp" not in found:
        return None
    x, y = draw.inputs, draw.cotangents
    likes = {"value": y, "jvp": y, "vjp": x, "hvp": x}
    return CaseRecord(
        id=draw.name,
        operation=draw.operation,
        kind=draw.kind,
        about=draw.about,
        dtype=draw.dtype,
        ranks=list(draw.ranks),
        conditions=conditions,
        orders=None if draw.orders is None else [order.tolist() for order in draw.orders],
        inputs=[*map(_array, draw.inputs)],
        cotangents=[*map(_array, draw.cotangents)],
        tangents=[*map(_array, draw.tangents)],
        results={
            name: [*map(_certified, zip(*matrices, strict=True), likes[name])]
            for name, matrices in found.items()
        },
    )


def _array(array: NDArray[Any]) -> Array:
    return Array(shape=[*array.shape], numbers=" ".join(number(float(x)) for x in flat(array)))


def _certified(matrices: Sequence[Exact], like: NDArray[Any]) -> Certified:
    """The matrices of a batch, complex where an array is that they correspond to."""
    field = (lambda array: array) if np.iscomplexobj(like) else np.real
    numbers = [
        number(float(high), float(low), int(each.value.exponent))
        for each in matrices
        for high, low in zip(flat(field(each.value.high)), flat(field(each.value.low)), strict=True)
    ]
    radius = max(each.radius for each in matrices) + 2.0**-_BITS
    return Certified(
        shape=[*like.shape],
        numbers=" ".join(numbers),
        radius=math.ceil(math.log2(radius)),
        divisors=[_short(each.allowed, int(each.value.exponent)) for each in matrices],
    )


def _short(size: float, exponent: int) -> str:
    """Rounded up to a few bits."""
    fraction, power = math.frexp(size)
    return number(math.ceil(fraction * 2**_SHORT), exponent=exponent + power - _SHORT)
