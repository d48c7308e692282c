import numpy as np
import pytest

from strategies.exact.problem import Problem, StoredFactors


def test_scalars_and_vectors_are_matrices() -> None:
    operands = Problem((np.eye(3), np.ones(3)), (np.array(2.0),), 3).operands
    assert [(held.nrows(), held.ncols()) for held in operands] == [(3, 3), (3, 1), (1, 1)]


def test_real_cotangents_join_a_complex_matrix() -> None:
    matrix, cotangent = Problem((1j * np.eye(2),), (np.array(2.0),), 2).operands
    assert type(matrix) is type(cotangent)


def test_profile_only_at_deficient_rank() -> None:
    assert Problem((np.eye(2),), (), 2).profile is None
    profile = Problem((np.diag([0.0, 1.0]),), (), 1).profile
    assert profile == ([1], [1])
    with pytest.raises(ValueError, match="rank 1, not 0"):
        _ = Problem((np.diag([0.0, 1.0]),), (), 0).profile


def test_stored_factors_stand_for_their_product() -> None:
    packed = np.array([[2.0, 3.0], [0.5, 4.0], [0.25, 1.0]])
    lower = np.array([[1.0, 0.0], [0.5, 1.0], [0.25, 1.0]])
    order = np.array([2, 0, 1])
    (product,) = StoredFactors((packed,), (), 2, order).operands
    entries = np.array([float(entry) for entry in product.entries()]).reshape(3, 2)
    np.testing.assert_array_equal(entries[order], lower @ np.triu(packed)[:2])
