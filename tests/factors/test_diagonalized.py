"""Adjugates and inverses of matrices of any rank, growth and scale, beside certified ones."""

import math

import pytest
import torch

from strategies.accuracy import gallery
from strategies.accuracy.stability import LIMIT, references
from strategies.factors.diagonalized import Diagonalized, diagonalize
from strategies.formulas.powers_of_two import times_power_of_two

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
SIZE = 7
DEFICIENT = "first_column_zero", "last_column_zero", "zero_row", "laplacian", "half_rank"
REGULAR = "graded_rows", "graded_columns", "kahan", "wilkinson_growth", "shuffled_rows_and_columns"


def graded(A, power):
    """Rows and columns scaled by up to 2^power, in opposite order."""
    steps = torch.linspace(0, power, SIZE).round().int()
    return times_power_of_two(A, steps.flip(-1).unsqueeze(-1) + steps)


@pytest.mark.parametrize(
    ("operation", "names", "method"),
    [
        ("det", DEFICIENT + REGULAR, Diagonalized.adjugate_adjoint),
        ("slogdet", REGULAR, Diagonalized.inverse_adjoint),
    ],
)
def test_adjugates_and_inverses_are_stable_at_every_scale(operation, names, method):
    for dtype in DTYPES:
        one = torch.ones((), dtype=dtype)
        cotangent = one if operation == "det" else one.real
        for name in names:
            specimen = gallery.make(name, (SIZE, SIZE), dtype)
            for matrix in (specimen.matrix, *(graded(specimen.matrix, n) for n in (8, -8))):
                _, (exact,) = references(operation, (matrix,), (cotangent,), rank=specimen.rank)
                found = method(diagonalize(matrix[None]), one[None])[0]
                assert max(exact.ratio(found)) < LIMIT


def test_determinants_are_held_beyond_the_range():
    for dtype in DTYPES:
        power = math.frexp(torch.finfo(dtype).max)[1] - 1
        A = times_power_of_two(torch.eye(3, dtype=dtype), torch.tensor(power))
        mantissa, exponent = diagonalize(A[None]).det()
        assert times_power_of_two(mantissa, exponent - 3 * power).item() == 1
