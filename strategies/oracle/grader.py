"""Judges a library's derivatives by an oracle set. It needs NumPy alone: copy this file.

    python grader.py ask SET ADAPTER ANSWERS    ask a library, by the functions of a Python file
    python grader.py grade SET ANSWERS          judge what it, or a program in any language, answered

A set is JSON Lines, packed by gzip or not: a header, then one case a line (docs/oracle.md). Answers
are lines, too: at will {"library": "its name and version"}, then for each case, in any order,

    {"id": "inv/hard/0", "vjp": ["0x1.8p+0 nan"], "jvp": {"refused": "message"}, "hvp": null}

A quantity is a list of matrices, each the numbers of all rows in one string, decimal or hexadecimal, of
complex ones the real part and then the imaginary part. One that is null or absent is missing. A suffix
after a dot, "hvp.reverse_over_forward", names one of several ways to compute it; each is judged.

An adapter is a Python file with any of the functions

    value(operation, inputs), vjp(operation, inputs, cotangents), jvp(operation, inputs, tangents),
    hvp(operation, inputs, cotangents, tangents), and others like it as hvp__reverse_over_forward,
    version() -> the library's name and version

from lists of NumPy arrays to lists of NumPy arrays, in the convention that a loss changes by Re tr(Ḡᴴ dX)
if Ḡ is the gradient of X. NotImplementedError says that the library has no such thing; any other
exception refuses.
"""

from __future__ import annotations

import gzip
import json
import math
import runpy
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RIGHT, UNSTABLE, WRONG, REFUSES, MISSING = "right", "unstable", "wrong", "refuses", "missing"
VERDICTS = (RIGHT, UNSTABLE, WRONG, REFUSES, MISSING)
"""From best to worst but for the last, which is no fault."""

TAKES = {
    "value": ("inputs",),
    "vjp": ("inputs", "cotangents"),
    "jvp": ("inputs", "tangents"),
    "hvp": ("inputs", "cotangents", "tangents"),
}
"""What of a case a function of an adapter is given, by quantity."""

QUANTITIES = tuple(TAKES)

NO_DIGIT = 0.1
"""A relative error from which not one digit is right."""

Case = dict[str, Any]
Answer = dict[str, Any]


class Judgement(NamedTuple):
    """What an answer to one quantity of one case is worth.

    Attributes:
        id: of the case.
        quantity: with the way it was computed, if there are several.
        verdict: right: the stability ratio is within the limit. unstable: it is above. wrong: it is
            above, and not one digit is right, or a number is not finite. refuses: an exception. missing:
            no answer.
        ratio: the error over what one rounding of the inputs explains; NaN if there is no answer.
        error: ‖computed − exact‖ / ‖exact‖ in Frobenius norms, the largest of the batch.
        note: the exception, or what is wrong with the shape.
    """

    id: str
    quantity: str
    verdict: str
    ratio: float = math.nan
    error: float = math.nan
    note: str = ""


def read(path: str | Path) -> tuple[dict[str, Any], list[Case]]:
    """The header and the cases of a set; ValueError if the file is none."""
    try:
        header, *cases = map(json.loads, lines(path))
        is_set = (header["format"], header["version"]) == ("gradient-oracle", 1)
    except (OSError, EOFError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as an oracle set: {error}") from error
    if not is_set:
        raise ValueError(f"{path} is no oracle set of version 1")
    return header, cases


def lines(path: str | Path) -> list[str]:
    """The lines of a set."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode().splitlines()


def array(record: dict[str, Any], dtype: str) -> np.ndarray[Any, Any]:
    """An input, a cotangent or a tangent as the library is given it: exactly."""
    numbers = np.array([float.fromhex(each) for each in record["numbers"].split()])
    shaped = _shaped(numbers, record["shape"])
    return shaped.astype(dtype if np.iscomplexobj(shaped) else np.zeros(0, dtype).real.dtype)


def ask(case: Case, adapter: dict[str, Any]) -> Answer:
    """What an adapter's functions answer to a case; of what else it defines nothing is asked."""
    answer: Answer = {"id": case["id"]}
    for name, function in adapter.items():
        quantity, _, way = name.partition("__")
        if quantity not in case["results"]:
            continue
        key = f"{quantity}.{way}" if way else quantity
        given = [[array(each, case["dtype"]) for each in case[group]] for group in TAKES[quantity]]
        try:
            found = function(case["operation"], *given)
            answer[key] = [_numbers(np.asarray(each)) for each in found]
        except NotImplementedError:
            answer[key] = None
        except Exception as error:  # noqa: BLE001 - whatever a library raises, it refuses
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            answer[key] = {"refused": f"{type(error).__name__}: {said[:160]}"}
    return answer


def grade(case: Case, answer: Answer, limit: float) -> Iterator[Judgement]:
    """A judgement of each quantity of a case, and of each way to compute it."""
    for quantity in case["results"]:
        ways = [key for key in answer if key.partition(".")[0] == quantity]
        for way in ways or [quantity]:
            yield _judged(case, way, answer.get(way), limit)


def _judged(case: Case, way: str, answered: Any, limit: float) -> Judgement:
    if answered is None:
        return Judgement(case["id"], way, MISSING)
    if isinstance(answered, dict):
        return Judgement(case["id"], way, REFUSES, note=answered["refused"])
    quantity = way.partition(".")[0]
    exact = case["results"][quantity]
    if len(answered) != len(exact):
        note = f"{len(answered)} matrices instead of {len(exact)}"
        return Judgement(case["id"], way, WRONG, math.inf, math.inf, note)
    ratios, errors = [0.0], [0.0]
    for i, (numbers, certified) in enumerate(zip(answered, exact, strict=True)):
        texts = numbers.split()
        values = np.array([float.fromhex(x) if "0x" in x else float(x) for x in texts])
        expected = len(certified["numbers"].split())
        if len(values) == 2 * expected:  # complex: the imaginary part of a real result is an error
            values = np.where(values[1::2] == 0, values[0::2], math.nan)
        if len(values) != expected:
            note = f"{len(values)} numbers instead of {expected}"
            return Judgement(case["id"], way, WRONG, math.inf, math.inf, note)
        is_of_matrix = quantity in ("vjp", "hvp") and i == 0
        part = domain_part(case["operation"]) if is_of_matrix else None
        for ratio, error in _compared(values, certified, part):
            ratios.append(ratio)
            errors.append(error)
    ratio, error = max(ratios), max(errors)
    verdict = RIGHT if ratio <= limit else UNSTABLE if error < NO_DIGIT else WRONG
    return Judgement(case["id"], way, verdict, ratio, error)


Matrix = np.ndarray[Any, Any]


def domain_part(operation: str) -> Callable[[Matrix], Matrix] | None:
    """What of a gradient counts where A moves along a subspace: its projection there.

    A Cholesky factorization reads Hermitian matrices; what takes a Cholesky factor, lower triangles with
    a real diagonal.
    """
    if operation == "cholesky":
        return lambda matrix: (matrix + matrix.conj().swapaxes(-1, -2)) / 2
    if operation in ("cholesky_solve", "cholesky_inverse"):
        return lambda matrix: np.tril(matrix, -1) + np.triu(np.tril(matrix)).real
    return None


def _compared(
    values: Matrix, certified: dict[str, Any], part: Callable[[Matrix], Matrix] | None
) -> Iterator[tuple[float, float]]:
    """Stability ratio and relative error of each matrix."""
    numbers = [_mantissa(each) for each in certified["numbers"].split()]
    divisors = [_mantissa(each) for each in certified["divisors"]]
    size = len(numbers) // len(divisors) if divisors else 0
    for index, (divisor, power) in enumerate(divisors):
        own = numbers[index * size : (index + 1) * size]
        # One exponent a matrix, so that no square of a norm leaves the range.
        lengths = [m.bit_length() + e for m, e in own if m]
        exponent = max(lengths, default=divisor.bit_length() + power)
        high = [math.ldexp(float(m), e - exponent) for m, e in own]
        low = [math.ldexp(float(m - int(float(m))), e - exponent) for m, e in own]
        with np.errstate(all="ignore"):
            computed = np.ldexp(values[index * size : (index + 1) * size], -exponent)
            if part is not None:
                computed = flat(part(_shaped(computed, certified["shape"][-2:])))
            error = float(np.linalg.norm(computed - np.array(high) - np.array(low)))
        norm = float(np.linalg.norm(high))
        allowed = math.ldexp(float(divisor), power - exponent)
        if not math.isfinite(error):
            yield math.inf, math.inf
        else:
            yield error / allowed, error / norm if norm else (math.inf if error > allowed else 0.0)


def _shaped(numbers: Matrix, shape: Sequence[int]) -> Matrix:
    """Complex if there are twice as many numbers as entries."""
    is_complex = numbers.size == 2 * math.prod(shape)
    return (numbers.view(np.complex128) if is_complex else numbers).reshape(shape)


def flat(matrix: Matrix) -> Matrix:
    """Real and imaginary parts alternately."""
    entries = np.ascontiguousarray(matrix).ravel()
    return entries.view(entries.real.dtype) if np.iscomplexobj(entries) else entries


def _mantissa(text: str) -> tuple[int, int]:
    """A hexadecimal float as m · 2^e, with all its digits."""
    digits, _, exponent = text.replace("0x", "", 1).partition("p")
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction, 16), int(exponent) - 4 * len(fraction)


def _numbers(values: Matrix) -> str:
    return " ".join(float(each).hex() for each in flat(values))


def judged(
    header: dict[str, Any], cases: Sequence[Case], answers: str | Path
) -> tuple[str, list[Judgement]]:
    """What a file of answers says it is of, and a judgement of each answer."""
    lines = [*map(json.loads, Path(answers).read_text(encoding="utf-8").splitlines())]
    by_id = {line["id"]: line for line in lines if "id" in line}
    library = next((line["library"] for line in lines if "library" in line), Path(answers).stem)
    found = [grade(case, by_id.get(case["id"], {}), header["limit"]) for case in cases]
    return library, [judgement for each in found for judgement in each]


def main(arguments: Sequence[str]) -> int:
    """The command line; the exit code is 1 if an answer is unstable or wrong."""
    if len(arguments) == 4 and arguments[0] == "ask":
        _, cases = read(arguments[1])
        adapter = runpy.run_path(arguments[2])
        out = Path(arguments[3])
        lines = out.read_text(encoding="utf-8").count("\n") if out.exists() else 0
        with out.open("a", encoding="utf-8") as file:
            if not lines:
                said = adapter["version"]() if "version" in adapter else Path(arguments[2]).stem
                file.write(json.dumps({"library": said}) + "\n")
            for case in cases[max(lines - 1, 0) :]:
                file.write(json.dumps(ask(case, adapter)) + "\n")
                file.flush()  # of a library that ends the process, all but one answer is kept
        return 0
    if len(arguments) == 3 and arguments[0] == "grade":
        header, cases = read(arguments[1])
        _, found = judged(header, cases, arguments[2])
        bad = [each for each in found if each.verdict in (UNSTABLE, WRONG)]
        for each in bad:
            print(f"{each.verdict:9}{each.id} {each.quantity}: ratio {each.ratio:.1e} {each.note}")
        counts = {name: sum(each.verdict == name for each in found) for name in VERDICTS}
        print(", ".join(f"{count} {name}" for name, count in counts.items()))
        return int(bool(bad))
    print(__doc__)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
