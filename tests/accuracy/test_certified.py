import math

import numpy as np
import pytest
import torch

from strategies.accuracy.certified import Certified, ScaledPair, times_power_of_two


def _certified(matrix: np.ndarray, exponent: int = 0) -> Certified:
    pair = ScaledPair(matrix, np.zeros_like(matrix), np.array(exponent, np.int32))
    return Certified((pair,), 0.0, 256)


def test_error_is_relative_to_the_exact_norm() -> None:
    exact = _certified(np.array([[3.0, 4.0]]))
    assert exact.relative_error((torch.tensor([[3.0, 4.5]]),)) == 0.1


def test_low_part_counts() -> None:
    pair = ScaledPair(np.array([[1.0]]), np.array([[2.0**-60]]), np.array(0, np.int32))
    exact = Certified((pair,), 0.0, 256)
    assert exact.relative_error((torch.ones(1, 1, dtype=torch.float64),)) == 2.0**-60


def test_exponent_keeps_what_a_double_cannot() -> None:
    exact = _certified(np.array([[1.0]]), exponent=3000)
    assert exact.gradients[0].item() == math.inf
    assert exact.relative_error((torch.ones(1, 1),)) == 1.0


def test_a_complex_overflow_is_infinite_in_the_part_that_overflows() -> None:
    with np.errstate(over="ignore"):
        beyond = times_power_of_two(np.array([[1.0 + 2.0j, 0.5j]]), np.array(1023, np.int32))
    assert beyond.tolist() == [[complex(2.0**1023, math.inf), complex(0.0, 2.0**1022)]]


@pytest.mark.parametrize(("computed", "error"), [(0.0, 0.0), (1e-300, math.inf)])
def test_exact_zero(computed: float, error: float) -> None:
    exact = _certified(np.zeros((1, 1)))
    assert exact.relative_error((torch.tensor([[computed]], dtype=torch.float64),)) == error


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("exact", [0.0, 1.0])
def test_not_finite_is_infinitely_wrong(bad: float, exact: float) -> None:
    certified = _certified(np.full((1, 1), exact))
    assert certified.relative_error((torch.tensor([[bad]]),)) == math.inf


def test_worst_of_the_batch_counts() -> None:
    matrix = np.ones((2, 1, 1))
    pair = ScaledPair(matrix, 0 * matrix, np.zeros(2, np.int32))
    computed = torch.tensor([1.0, 1.5]).reshape(2, 1, 1)
    assert Certified((pair,), 0.0, 256).relative_error((computed,)) == 0.5


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 1\).*\(1, 2\)"):
        _certified(np.ones((1, 2))).relative_error((torch.ones(2, 1),))


def test_an_imaginary_part_is_wrong_where_the_exact_gradient_is_real() -> None:
    exact = _certified(np.ones((1, 1)))
    assert exact.relative_error((torch.tensor([[1 + 0.5j]]),)) == 0.5


def test_lazy_negatives_and_conjugates_count_as_their_values() -> None:
    exact = _certified(np.full((1, 1), -2.0))
    negative = torch.tensor([[1 + 2j]]).conj().imag
    assert negative.is_neg()
    assert exact.relative_error((negative,)) == 0.0
