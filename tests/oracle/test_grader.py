"""The grader: whom it lets pass, and ten kinds of broken gradients that it does not."""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from strategies.oracle import grader
from strategies.oracle.asking import CORE
from strategies.oracle.grader import MISSING, REFUSES, RIGHT, UNSTABLE, WRONG

HEADER, CASES = grader.read(CORE)


def wide(case, record):
    """A matrix of a case, rounded to double precision."""
    array = grader.array(record, case["dtype"])
    return array.astype(np.result_type(array, np.float64))


def verdicts(broken, quantity="vjp"):
    """Of all cases, where a function takes the place of a right gradient."""
    for case in CASES:
        if quantity in case["results"]:
            matrices = broken(case, [wide(case, each) for each in case["results"][quantity]])
            answer = {"id": case["id"], quantity: [grader._numbers(each) for each in matrices]}
            judged = grader.grade(case, answer, HEADER["limit"])
            yield from (each.verdict for each in judged if each.quantity == quantity)


def given(case, *names):
    """The first arrays of a case by name, in double precision."""
    return (wide(case, case[name][0]) for name in names)


@pytest.mark.parametrize("quantity", grader.QUANTITIES)
def test_what_is_exact_but_for_one_rounding_is_right(quantity):
    def rounded(case, matrices):
        with np.errstate(over="ignore", under="ignore"):
            is_single = case["dtype"] in ("float32", "complex64")
            return [m.astype(case["dtype"] if is_single else m.dtype) for m in matrices]

    assert set(verdicts(rounded, quantity)) == {RIGHT}


def _first(change):
    return lambda case, matrices: [change(matrices[0]), *matrices[1:]]


def _no_projection(case, matrices):
    """−A⁺ᴴ G A⁺ᴴ for the pseudoinverse of any matrix, as if it were an inverse."""
    if case["operation"] != "pinv":
        return matrices
    A, G = given(case, "inputs", "cotangents")
    adjoint = np.linalg.pinv(A).conj().swapaxes(-1, -2)
    return [-adjoint @ G @ adjoint]


def _normal_equations(case, matrices):
    """B̄ of least squares as A⁺ᴴ G with A⁺ = (AᴴA)⁻¹Aᴴ, or Aᴴ(AAᴴ)⁻¹ of a wide A."""
    A, G = given(case, "inputs", "cotangents")
    k = min(A.shape[-2:])
    if case["operation"] != "lstsq" or min(case["ranks"]) < k:
        return matrices
    adjoint = A.conj().swapaxes(-1, -2)
    tall = A.shape[-2] >= A.shape[-1]
    inverse = np.linalg.inv(adjoint @ A if tall else A @ adjoint)
    return [matrices[0], A @ (inverse @ G) if tall else inverse @ (A @ G)]


def _zero_at_deficient_rank(case, matrices):
    is_full = min(case["ranks"]) == min(case["inputs"][0]["shape"][-2:])
    return matrices if is_full else [0 * m for m in matrices]


BROKEN = {
    "the sign": _first(lambda m: -m),
    "a factor of two": _first(lambda m: 2 * m),
    "the transpose": _first(lambda m: m.swapaxes(-1, -2) if m.shape[-1] == m.shape[-2] else m),
    "the conjugate": _first(np.conj),
    "the real part": _first(np.real),
    "single precision": _first(lambda m: m.astype("c8" if np.iscomplexobj(m) else "f4")),
    "one entry": _first(
        lambda m: m + 1e-6 * abs(m).max(initial=0) * (np.arange(m.size).reshape(m.shape) == 0)
    ),
    "the term of the residual": _no_projection,
    "the normal equations": _normal_equations,
    "zero where the rank is deficient": _zero_at_deficient_rank,
    "the first matrix for the whole batch": _first(lambda m: m if m.ndim < 3 else m * 0 + m[:1]),
    "not a number where it is zero": _first(lambda m: np.where(m == 0, np.nan, m)),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_a_broken_gradient_is_caught(kind):
    assert any(verdict in (UNSTABLE, WRONG) for verdict in verdicts(BROKEN[kind]))


def test_an_imaginary_part_of_a_real_result_is_wrong():
    assert next(verdicts(lambda _, matrices: [matrices[0] + 1j, *matrices[1:]])) == WRONG


def judgement(answer, case=CASES[0]):
    return next(each for each in grader.grade(case, answer, 100.0) if each.quantity == "vjp")


@pytest.mark.parametrize(
    ("answer", "verdict", "note"),
    [
        ({}, MISSING, ""),
        ({"vjp": None}, MISSING, ""),
        ({"vjp": {"refused": "ValueError: no"}}, REFUSES, "ValueError: no"),
        *(({"vjp": each}, WRONG, "instead of") for each in ([], ["1.0 2.0"], ["0x1p+0"] * 5)),
    ],
)
def test_no_answer_an_exception_and_another_shape_are_told(answer, verdict, note):
    found = judgement(answer)
    assert found.verdict == verdict
    assert note in found.note
    assert bool(note) == bool(found.note)


def test_the_ratio_is_that_of_the_accuracy_room():
    import torch

    from strategies.oracle.draws import candidates
    from strategies.oracle.truth import truth

    case = next(case for case in CASES if case["id"] == "inv/plain/0")
    (of_matrix,) = truth(next(candidates("inv", "plain", 0, 0)))["vjp"]
    computed = wide(case, case["results"]["vjp"][0]) * (1 + 1e-9)
    found = judgement({"vjp": [grader._numbers(computed)]}, case)
    expected = of_matrix[0].ratio(torch.from_numpy(computed)).normwise
    assert found.ratio == pytest.approx(expected, rel=2**-7)  # a divisor has eight bits


def test_it_needs_numpy_alone():
    nodes = [*ast.walk(ast.parse(Path(grader.__file__).read_text(encoding="utf-8")))]
    imported = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} - {"numpy"} <= set(sys.stdlib_module_names)


def test_the_command_asks_and_grades(tmp_path, capsys):
    few, adapter, answers = (
        tmp_path / name for name in ("set.jsonl", "adapter.py", "answers.jsonl")
    )
    lines = grader.lines(CORE)
    some = [lines[0], *(line for line in lines[1:] if '"id":"inv/plain/' in line)]
    few.write_text("\n".join(some), encoding="utf-8")
    adapter.write_text(
        "import numpy as np\n"
        "def value(operation, inputs):\n    return [np.linalg.inv(inputs[0])]\n"
        "def vjp(operation, inputs, cotangents):\n    raise NotImplementedError\n"
        "def jvp(operation, inputs, tangents):\n    return [np.linalg.inv(inputs[0])]\n"
    )
    assert grader.main(["ask", str(few), str(adapter), str(answers)]) == 0
    assert json.loads(answers.read_text().splitlines()[0]) == {"library": "adapter"}
    assert grader.main(["grade", str(few), str(answers)]) == 1
    told = capsys.readouterr().out
    assert "wrong    inv/plain/0 jvp" in told
    assert told.splitlines()[-1] == "9 right, 0 unstable, 9 wrong, 0 refuses, 18 missing"
