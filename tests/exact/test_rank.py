import numpy as np
import pytest

from strategies.exact.rank import rank_profile


def test_rank_of_what_rounding_would_hide() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    assert rank_profile(matrix) == ([0, 1], [0, 1])


def test_the_submatrix_is_nonsingular() -> None:
    matrix = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 4.0], [0.0, 1.0, 2.0], [0.0, 1.0, 3.0]])
    assert rank_profile(matrix) == ([1, 3], [1, 2])


def test_complex_multiples_are_dependent() -> None:
    matrix = np.array([[1.0, 2j], [1j, -2.0]])
    assert rank_profile(matrix) == ([0], [0])


@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**1000])
def test_scale_does_not_matter(scale: float) -> None:
    assert len(rank_profile(scale * np.diag([1.0, 2.0, 0.0]))[0]) == 2


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_matrices_have_rank_zero(shape: tuple[int, int]) -> None:
    assert rank_profile(np.zeros(shape)) == ([], [])


def test_an_entry_that_one_prime_divides_counts() -> None:
    assert rank_profile(np.diag([1.0, 2.0**31 - 19, 0.0])) == ([0, 1], [0, 1])
    assert rank_profile(np.diag([1.0, 2.0**31 - 99, 0.0])) == ([0, 1], [0, 1])
