"""The derivatives of the inverse and of the adjugate, at any rank and condition."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from comparison import drawn

from strategies import linalg
from strategies.factors.inverse_derivatives import derivative_of_adjugate, derivative_of_inverse
from strategies.formulas.det import permutation_sign
from tests.factors.cofactors import adjugate, cofactors, determinant, entries

close = torch.testing.assert_close
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])


def factors(A):
    LU, pivots = torch.linalg.lu_factor_ex(A)[:2]
    return LU.mT.contiguous(), pivots


def of_adjugate(A, direction, exponent=0):
    LU, pivots = torch.linalg.lu_factor_ex(A)[:2]
    det = permutation_sign(LU, pivots) * LU.diagonal(dim1=-2, dim2=-1).prod(-1)
    exponents = torch.full(det.shape, exponent)
    return derivative_of_adjugate(A, *factors(A), det * 2.0**-exponent, exponents, direction)


def found(A, direction):
    return of_adjugate(A, direction)[0]


@DTYPES
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (0, 4, 4)])
def test_that_of_an_inverse_is_that_of_forward_mode(shape, dtype):
    A, direction = drawn(2, *shape, dtype=dtype)
    _, expected = torch.func.jvp(lambda A: torch.linalg.inv(A).mH, (A,), (direction,))
    close(derivative_of_inverse(A, *factors(A), direction)[0], expected)


@DTYPES
@pytest.mark.parametrize("rank", range(5))
@pytest.mark.parametrize("batch", [(), (3,)])
def test_that_of_an_adjugate_is_that_of_the_polynomial(rank, batch, dtype):
    left, right = drawn(2, *batch, 4, rank, dtype=dtype)
    A, direction = left @ right.mT, drawn(*batch, 4, 4, dtype=dtype, seed=2)
    expected = torch.func.jvp(lambda A: adjugate(A).mH, (A,), (direction,))[1]
    close(found(A, direction), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rank", [3, 4])
def test_a_determinant_may_be_given_with_an_exponent(rank):
    left, right = drawn(2, 3, 4, rank)
    A, direction = left @ right.mT, drawn(3, 4, 4, seed=2)
    close(of_adjugate(A, direction, exponent=7), of_adjugate(A, direction))


@DTYPES
@pytest.mark.parametrize("rank", range(1, 5))
def test_the_traces_are_derivatives_of_the_determinant(rank, dtype):
    left, right = drawn(2, 2, 4, rank, dtype=dtype)
    A, direction = left @ right.mT, drawn(2, 4, 4, dtype=dtype, seed=2)
    det, of_det = torch.func.jvp(lambda A: determinant(entries(A)), (A,), (direction,))
    close(of_adjugate(A, direction)[1], of_det)
    if rank == 4:
        close(derivative_of_inverse(A, *factors(A), direction)[1], of_det / det)


def test_a_small_pivot_before_the_last_costs_no_digits():
    singular = [[-2, 11, -7, -2], [13, 1, 2, -13], [3, -9, 6, 0], [-19, 12, -11, 6]]
    halves = [[0, 3, 3, 1], [-1, 3, -3, 3], [2, -1, -1, -2], [1, 3, -3, 1]]
    A, change = (torch.tensor(each, dtype=torch.float64) for each in (singular, halves))
    A = (A + change * 2.0**-29).requires_grad_()
    direction = torch.tensor(
        [[-2, 2, 3, -2], [-8, -8, 0, 7], [-8, -7, -3, 7], [6, -2, 1, 3]], dtype=torch.float64
    )
    (adjoint,) = torch.autograd.grad(linalg.det(A), A, create_graph=True)
    (second,) = torch.autograd.grad(adjoint, A, direction)
    expected = torch.func.jvp(lambda A: adjugate(A).mH, (A.detach(),), (direction,))[1]
    close(second, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("smallest", [1e-3, 1e-6, 1e-9, 1e-12])
def test_no_digits_are_lost_where_one_singular_value_is_alone(smallest):
    U, V = torch.linalg.qr(drawn(2, 3, 3))[0]
    A = U @ torch.diag(torch.tensor([1, 0.5, smallest], dtype=U.dtype)) @ V
    direction = drawn(3, 3, seed=3)

    def at(sign):
        exact = np.vectorize(Fraction, otypes=[object])
        return np.array(cofactors((exact(A) + sign * exact(direction)).tolist()))

    # Quadratic in A, so that the difference is exact.
    expected = torch.from_numpy(((at(1) - at(-1)) / 2).astype(float))
    close(found(A, direction), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("power", [-300, -60, 60, 300])
def test_a_far_scale_costs_no_digits(power):
    A, direction = drawn(2, 4, 4)
    A[:, 3] = A[:, 0] + 2.0**-30 * A[:, 3]
    found, scaled = (
        derivative_of_inverse(each, *factors(each), direction)[0] for each in (A, A * 2.0**power)
    )
    close(scaled * 2.0 ** (2 * power), found, rtol=1e-13, atol=0)


def test_a_matrix_that_is_not_finite_leaves_the_others_alone():
    A, direction = drawn(2, 3, 4, 4)
    A[1, 2, 0] = torch.nan
    for function in (found, lambda A, C: derivative_of_inverse(A, *factors(A), C)[0]):
        result = function(A, direction)
        assert result[1].isnan().all()
        close(result[[0, 2]], function(A[[0, 2]], direction[[0, 2]]))
