import math

import pytest
import torch

from strategies.measuring import Case, backward_of
from strategies.measuring.errors import CHECKED, checked_problem, gradient_error
from strategies.measuring.measurement import WORST_ERROR


def test_a_wrong_gradient_is_found():
    case = Case("inv", (4, 4))
    (right,) = backward_of(case, "native")()
    assert gradient_error(case, (1.01 * right,)) == pytest.approx(0.01)


def test_an_error_is_finite_and_above_zero():
    case = Case("det", (1, 1))
    assert gradient_error(case, (torch.full((1, 1), math.nan),)) == WORST_ERROR
    assert gradient_error(case, backward_of(case, "native")()) > 0


def test_the_first_matrices_of_a_batch_are_checked():
    case = Case("inv", (3, 3), batch=50)
    (computed,) = backward_of(case, "native")()
    computed[CHECKED:] = math.nan
    assert gradient_error(case, (computed,)) < 1e-13
    inputs, cotangents = checked_problem(case)
    assert len(inputs[0]) == len(cotangents[0]) == CHECKED


def test_the_rank_of_a_named_matrix_is_known():
    case = Case("pinv", (12, 4), matrix="half_rank")
    assert gradient_error(case, backward_of(case, "native")()) < 1e-12


def test_what_takes_too_long_to_be_exact_has_no_error():
    case = Case("inv", (1000, 1000))
    assert gradient_error(case, ()) is None
