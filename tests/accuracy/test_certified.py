import math

import numpy as np
import pytest
import torch

from strategies.accuracy.certified import Certified, ScaledPair, times_power_of_two

LAZY_NEGATIVE = torch.tensor([[1 + 2j]]).conj().imag
"""−2, negated where it is read."""


def _certified(matrix, low=0.0, exponent=0):
    high = np.array(matrix)
    pair = ScaledPair(high, np.full_like(high, low), np.array(exponent, np.int32))
    return Certified((pair,), 0.0, 256)


ERRORS = {
    "relative to the exact norm": (_certified([[3.0, 4.0]]), [[3.0, 4.5]], 0.1),
    "the low part counts": (_certified([[1.0]], 2.0**-60), np.ones((1, 1)), 2.0**-60),
    "beyond a double": (_certified([[1.0]], exponent=3000), [[1.0]], 1.0),
    "zero for zero": (_certified([[0.0]]), [[0.0]], 0.0),
    "anything else for zero": (_certified([[0.0]]), np.array([[1e-300]]), math.inf),
    "NaN for zero": (_certified([[0.0]]), [[math.nan]], math.inf),
    "NaN": (_certified([[1.0]]), [[math.nan]], math.inf),
    "infinity for zero": (_certified([[0.0]]), [[math.inf]], math.inf),
    "infinity": (_certified([[1.0]]), [[math.inf]], math.inf),
    "the worst": (_certified([[[1.0]], [[1.0]]], exponent=[0, 0]), [[[1.0]], [[1.5]]], 0.5),
    "imaginary part of a real gradient": (_certified([[1.0]]), [[1 + 0.5j]], 0.5),
    "negated where it is read": (_certified([[-2.0]]), LAZY_NEGATIVE, 0.0),
}


@pytest.mark.parametrize(("exact", "computed", "error"), ERRORS.values(), ids=ERRORS)
def test_the_error(exact, computed, error):
    assert exact.relative_error((torch.as_tensor(computed),)) == error


def test_the_negative_is_lazy_and_the_gradient_beyond_a_double_infinite():
    assert LAZY_NEGATIVE.is_neg()
    assert _certified([[1.0]], exponent=3000).gradients[0].item() == math.inf


def test_a_complex_overflow_is_infinite_in_the_part_that_overflows():
    with np.errstate(over="ignore"):
        beyond = times_power_of_two(np.array([[1.0 + 2.0j, 0.5j]]), np.array(1023, np.int32))
    assert beyond.tolist() == [[complex(2.0**1023, math.inf), complex(0.0, 2.0**1022)]]


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 1\).*\(1, 2\)"):
        _certified(np.ones((1, 2))).relative_error((torch.ones(2, 1),))
