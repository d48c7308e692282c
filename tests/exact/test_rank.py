import numpy as np
import pytest

from strategies.exact.rank import rank_profile

PROFILES = {
    "what rounding would hide": ([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]], ([0, 1], [0, 1])),
    "a submatrix": ([[0.0, 0, 0], [0, 2, 4], [0, 1, 2], [0, 1, 3]], ([1, 3], [1, 2])),
    "complex multiples": ([[1.0, 2j], [1j, -2.0]], ([0], [0])),
    "an entry that one prime divides": (np.diag([1.0, 2.0**31 - 19, 0.0]), ([0, 1], [0, 1])),
    "an entry that the other divides": (np.diag([1.0, 2.0**31 - 99, 0.0]), ([0, 1], [0, 1])),
    "tiny": (2.0**-1070 * np.diag([1.0, 2.0, 0.0]), ([0, 1], [0, 1])),
    "huge": (2.0**1000 * np.diag([1.0, 2.0, 0.0]), ([0, 1], [0, 1])),
    "no entries": (np.zeros((0, 0)), ([], [])),
    "no rows": (np.zeros((0, 3)), ([], [])),
    "no columns": (np.zeros((3, 0)), ([], [])),
}


@pytest.mark.parametrize("kind", PROFILES)
def test_a_profile_is_of_the_first_independent_rows_and_columns(kind):
    matrix, profile = PROFILES[kind]
    assert rank_profile(np.array(matrix)) == profile
