"""Derivatives of numbers and matrices of balls against rational arithmetic and known identities."""

import pytest
from flint import acb, arb, arb_mat

from strategies.exact.dual import Dual, adjugate


@pytest.mark.parametrize(("entries", "expected"), [([2, 4, 3, 6], [6, -4, -3, 2]), ([5], [1])])
def test_the_adjugate_needs_no_inverse(entries, expected):
    size = len(expected) // 2 or 1
    assert adjugate(arb_mat(size, size, entries)) == arb_mat(size, size, expected)


def test_the_adjugate_of_a_dual_matrix_is_that_of_a_perturbed_one():
    a, e = arb_mat(3, 3, [1, 2, 3, 4, 5, 6, 7, 8, 9]), arb_mat(3, 3, [0, 1, 0, 2, 0, 0, 1, 1, 1])
    step = arb(2) ** -80
    difference = (adjugate(a + e * step) - adjugate(a - e * step)) * (1 / (2 * step))
    # The third derivative of a quadratic polynomial is zero: the central difference is exact.
    assert (difference - adjugate(Dual(a, e)).tangent).contains(arb_mat(3, 3))


def test_a_determinant_moves_by_the_cofactors():
    det = Dual(arb_mat(2, 2, [2, 4, 3, 6]), arb_mat(2, 2, [1, 0, 0, 0])).det()
    assert (det.value, det.tangent) == (0, 6)


def test_modulus_and_sign_of_complex_numbers():
    z = Dual(acb(3, 4), acb(0, 1))
    assert abs(z).tangent.overlaps(arb(4) / 5)
    # s = z / |z|: d(3 + 4i)/5 = i/5 − (3 + 4i)/25 · 4/5
    assert z.sgn().tangent.overlaps(acb(0, 1) / 5 - acb(3, 4) * 4 / 125)


def test_the_sign_of_a_real_number_does_not_move():
    assert Dual(arb(-3), arb(1)).sgn().tangent == 0
    assert abs(Dual(arb(-3), arb(1))).tangent == -1
