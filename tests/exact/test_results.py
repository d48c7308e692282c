"""Exact results, against rational arithmetic that shares no code with them."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from strategies import operations
from strategies.exact.problem import Problem

A = np.array([[2.0, 1.0], [1.0, 3.0]])
B = np.array([[1.0], [4.0]])
# det A = 5 and the inverse is [[3, -1], [-1, 2]] / 5.
INVERSE = [Fraction(3, 5), Fraction(-1, 5), Fraction(-1, 5), Fraction(2, 5)]
X = [Fraction(-1, 5), Fraction(7, 5)]
EXPECTED = {"inv": INVERSE, "pinv": INVERSE, "solve": X, "lstsq": X, "det": [Fraction(5)]}


def values(matrix):
    return [float(entry) for entry in matrix.entries()]


@pytest.mark.parametrize("operation", EXPECTED)
def test_two_by_two(operation):
    inputs = (A, B)[: operations.get(operation).arity]
    (result,) = operations.get(operation).exact_result(Problem(inputs, (), 2))
    assert values(result) == pytest.approx([float(x) for x in EXPECTED[operation]], rel=1e-15)


def test_of_deficient_rank():
    ones = np.ones((3, 2))
    (result,) = operations.get("pinv").exact_result(Problem((ones,), (), 1))
    assert values(result) == pytest.approx([1 / 6] * 6, rel=1e-15)
    (result,) = operations.get("det").exact_result(Problem((np.ones((2, 2)),), (), 1))
    assert values(result) == [0.0]


def test_sign_and_logarithm_of_a_determinant():
    exact = operations.get("slogdet").exact_result
    (logarithm,) = exact(Problem((-A,), (), 2))
    assert values(logarithm) == pytest.approx([np.log(5)], rel=1e-15)
    sign, logarithm = exact(Problem((1j * A,), (), 2))
    assert complex(sign[0, 0]) == pytest.approx(-1)
    assert float(logarithm[0, 0].real) == pytest.approx(np.log(5), rel=1e-15)


@pytest.mark.parametrize(
    "name", [name for name in operations.names() if operations.get(name).exact_result]
)
def test_they_agree_with_torch(name):
    record = operations.get(name)
    A = torch.randn(4, 4, dtype=torch.complex128)
    A = record.domain.member(A)
    inputs = (A, torch.ones(4, 2, dtype=torch.complex128))[: record.arity]
    expected = record.outputs(record.function(*inputs, strategy="native"))
    found = record.exact_result(Problem(tuple(t.numpy() for t in inputs), (), 4))
    for exact, by_torch in zip(found, expected, strict=True):
        numbers = [complex(entry) for entry in exact.entries()]
        assert numbers == pytest.approx(by_torch.flatten().tolist(), rel=1e-12)
