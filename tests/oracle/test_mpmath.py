"""The certified numbers against 60 digits of mpmath, which differentiates by differences.

None of the formulas of derivatives is used: results are moved by a step that 180 digits make exact to 60.
"""

import mpmath
import pytest

from strategies.oracle.asking import CORE
from strategies.oracle.grader import _mantissa, read
from tests.oracle.by_mpmath import forward, moved, paired

DIGITS = 60
STEP = mpmath.mpf(10) ** -DIGITS


def _held(record):
    """The matrix with all digits that are written."""
    numbers = [m * mpmath.mpf(2) ** e for m, e in map(_mantissa, record["numbers"].split())]
    shape = [1, 1, *record["shape"]][-2:] if len(record["shape"]) < 2 else record["shape"]
    if len(numbers) == 2 * shape[0] * shape[1]:
        numbers = [mpmath.mpc(a, b) for a, b in zip(numbers[0::2], numbers[1::2], strict=True)]
    rows = [numbers[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    return mpmath.matrix(rows)


def _is_smooth(case):
    """Whether it is one matrix, of full rank or for det: mpmath has no pseudoinverse of others here."""
    is_full = case["ranks"] == [min(case["inputs"][0]["shape"][-2:])]
    return case["kind"] != "batched" and (is_full or case["operation"] == "det")


@pytest.mark.parametrize("case", [*filter(_is_smooth, read(CORE)[1])], ids=lambda case: case["id"])
@mpmath.workdps(3 * DIGITS)
def test_agrees_with_mpmath(case):
    """Value and JVP in all entries, VJP and Hessian–vector product along the tangents."""
    groups = [[*map(_held, case[name])] for name in ("inputs", "cotangents", "tangents")]
    inputs, cotangents, tangents = groups
    results = {name: [*map(_held, parts)] for name, parts in case["results"].items()}
    order, is_complex = case.get("orders", [None])[0], case["dtype"].startswith("complex")
    function = forward(case["operation"], order, is_complex)

    def at(step):
        return function(*moved(inputs, tangents, step))

    here, ahead, behind = at(0), at(STEP), at(-STEP)
    first = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
    second = [(a - 2 * h + b) / STEP**2 for a, h, b in zip(ahead, here, behind, strict=True)]
    for quantity, expected in (("value", here), ("jvp", first)):
        for found, exact in zip(results.get(quantity, []), expected, strict=False):
            # Of what is zero, a difference leaves the square of the step.
            is_zero = not any(found) and mpmath.norm(exact) < STEP
            assert is_zero or mpmath.norm(found - exact) <= mpmath.norm(exact) / 2**60
    for quantity, expected in (("vjp", first), ("hvp", second)):
        if quantity in results:
            found, exact = paired(results[quantity], tangents), paired(cotangents, expected)
            size = mpmath.fsum(
                mpmath.norm(a) * mpmath.norm(b)
                for a, b in zip(results[quantity], tangents, strict=True)
            )
            assert abs(found - exact) <= mpmath.mpf(2) ** -60 * size
