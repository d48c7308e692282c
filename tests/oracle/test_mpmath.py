"""The certified numbers against 60 digits of mpmath, which differentiates by differences.

None of the formulas of derivatives is used: the results are written down by elimination and by normal
equations, and moved by a step that 180 digits make exact to 60.
"""

import mpmath
import pytest

from strategies.oracle.asking import CORE
from strategies.oracle.grader import _mantissa, read

DIGITS = 60
STEP = mpmath.mpf(10) ** -DIGITS


def _pinv(a):
    if a.rows < a.cols:
        return a.H * mpmath.inverse(a * a.H)
    return mpmath.inverse(a.H * a) * a.H


def _lu(a, order):
    """Doolittle's L and U of rows in this order."""
    m, n, k = a.rows, a.cols, min(a.rows, a.cols)
    rest = mpmath.matrix([[a[int(i), j] for j in range(n)] for i in order])
    L, U = mpmath.matrix(m, k), mpmath.matrix(k, n)
    for step in range(k):
        for j in range(step, n):
            U[step, j] = rest[step, j]
        L[step, step] = 1
        for i in range(step + 1, m):
            L[i, step] = rest[i, step] / rest[step, step]
            for j in range(step, n):
                rest[i, j] -= L[i, step] * U[step, j]
    return L, U


def _packed(a, order):
    L, U = _lu(a, order)
    entries = [[L[i, j] if j < i else U[i, j] for j in range(a.cols)] for i in range(a.rows)]
    return (mpmath.matrix(entries),)


def _lower(a):
    entries = [[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)]
    return mpmath.matrix(entries)


def _cholesky(a):
    """From Aᴴ = A and the lower triangle of A: square roots of Schur complements."""
    n = a.rows
    rest, L = a.copy(), mpmath.matrix(n, n)
    for k in range(n):
        root = mpmath.sqrt(mpmath.re(rest[k, k]))
        for i in range(k, n):
            L[i, k] = rest[i, k] / root
        for i in range(k, n):
            for j in range(k, n):
                rest[i, j] -= L[i, k] * mpmath.conj(L[j, k])
    return (L,)


def _slogdet(a, is_complex):
    det = _det(a)
    logarithm = mpmath.matrix([[mpmath.log(abs(det))]])
    return (mpmath.matrix([[det / abs(det)]]), logarithm) if is_complex else (logarithm,)


def _det(a):
    """By minors."""
    if a.rows == 1:
        return a[0, 0]
    total = mpmath.mpf(0)
    for j in range(a.cols):
        columns = [i for i in range(a.cols) if i != j]
        minor = mpmath.matrix([[a[i, c] for c in columns] for i in range(1, a.rows)])
        total += (-1) ** j * a[0, j] * _det(minor)
    return total


def _forward(case):
    order = case.get("orders", [None])[0]
    is_complex = case["dtype"].startswith("complex")
    return {
        "cholesky": _cholesky,
        "cholesky_inverse": lambda L: (mpmath.inverse(_lower(L) * _lower(L).H),),
        "cholesky_solve": lambda L, B: (mpmath.inverse(_lower(L) * _lower(L).H) * B,),
        "det": lambda A: (mpmath.matrix([[_det(A)]]),),
        "slogdet": lambda A: _slogdet(A, is_complex),
        "inv": lambda A: (mpmath.inverse(A),),
        "lstsq": lambda A, B: (_pinv(A) * B,),
        "lu_factor": lambda A: _packed(A, order),
        "lu": lambda A: _lu(A, order),
        "pinv": lambda A: (_pinv(A),),
        "solve": lambda A, B: (mpmath.inverse(A) * B,),
    }[case["operation"]]


def _held(record):
    """The matrix with all digits that are written."""
    numbers = [m * mpmath.mpf(2) ** e for m, e in map(_mantissa, record["numbers"].split())]
    shape = [1, 1, *record["shape"]][-2:] if len(record["shape"]) < 2 else record["shape"]
    if len(numbers) == 2 * shape[0] * shape[1]:
        numbers = [mpmath.mpc(a, b) for a, b in zip(numbers[0::2], numbers[1::2], strict=True)]
    rows = [numbers[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    return mpmath.matrix(rows)


def _moved(inputs, directions, step):
    return [x + d * step for x, d in zip(inputs, directions, strict=True)]


def _paired(one, other):
    """Re ⟨one, other⟩."""
    return mpmath.fsum(
        mpmath.re(mpmath.conj(x) * y)
        for a, b in zip(one, other, strict=True)
        for x, y in zip(a, b, strict=True)
    )


def _check(case):
    """Value and JVP in all entries, VJP and Hessian–vector product along the tangents."""
    groups = [[*map(_held, case[name])] for name in ("inputs", "cotangents", "tangents")]
    inputs, cotangents, tangents = groups
    results = {name: [*map(_held, parts)] for name, parts in case["results"].items()}
    forward = _forward(case)

    def at(step):
        return forward(*_moved(inputs, tangents, step))

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
            found, exact = _paired(results[quantity], tangents), _paired(cotangents, expected)
            size = mpmath.fsum(
                mpmath.norm(a) * mpmath.norm(b)
                for a, b in zip(results[quantity], tangents, strict=True)
            )
            assert abs(found - exact) <= mpmath.mpf(2) ** -60 * size


def _sample(count):
    """Single matrices of full rank, and those of det at every rank, as many of each operation."""
    taken = {}
    for case in read(CORE)[1]:
        is_full = case["ranks"] == [min(case["inputs"][0]["shape"][-2:])]
        if case["kind"] != "batched" and (is_full or case["operation"] == "det"):
            taken.setdefault(case["operation"], []).append(case)
    return [case for cases in taken.values() for case in cases[:: max(1, len(cases) // count)]][
        : 11 * count
    ]


@pytest.mark.parametrize("case", _sample(1), ids=lambda case: case["id"])
def test_agrees_with_mpmath(case):
    with mpmath.workdps(3 * DIGITS):
        _check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", _sample(10), ids=lambda case: case["id"])
def test_a_hundred_agree_with_mpmath(case):
    with mpmath.workdps(3 * DIGITS):
        _check(case)
