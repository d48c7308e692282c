"""Calls of BLAS in compiled loops against NumPy's operators."""

import numba
import numpy as np
import pytest
import scipy.linalg

from strategies.kernels.cpu import blas

pytestmark = pytest.mark.skipif(not blas.IS_AVAILABLE, reason="torch does not show its BLAS")

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@numba.njit
def _subtract_product(C, A, B):
    blas.subtract_product(C, A, B)


@numba.njit
def _solve_upper(U, B):
    blas.solve_upper(U, B)


@numba.njit
def _solve_unit_lower_from_right(L, B):
    blas.solve_unit_lower_from_right(L, B)


def _matrix(rows, columns, dtype, seed=0):
    """Part of a larger one, its columns further apart than they are long."""
    generator = np.random.default_rng(seed)
    parts = generator.standard_normal((2, columns + 2, rows + 3))
    whole = parts[0] + 1j * parts[1] if np.issubdtype(dtype, np.complexfloating) else parts[0]
    return whole.astype(dtype).T[:rows, :columns]


def _close(result, expected):
    return np.allclose(result, expected, rtol=1e3 * np.finfo(result.dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(5, 3, 4), (1, 3, 1), (5, 1, 1), (70, 60, 50)]
)
def test_a_product_is_subtracted(rows, inner, columns, dtype):
    C, A, B = (
        _matrix(*shape, dtype, seed)
        for seed, shape in enumerate([(rows, columns), (rows, inner), (inner, columns)])
    )
    expected = C - A @ B
    _subtract_product(C, A, B)
    assert _close(C, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_upper_triangle_is_solved_with(dtype):
    U, B = _matrix(6, 6, dtype) + 5 * np.eye(6, dtype=dtype), _matrix(6, 4, dtype, 1)
    U = np.asfortranarray(U)
    expected = scipy.linalg.solve_triangular(U, B)
    _solve_upper(U, B)
    assert _close(B, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_lower_triangle_is_solved_with_from_the_right(dtype):
    L, B = np.asfortranarray(_matrix(6, 6, dtype) / 6), _matrix(4, 6, dtype, 1)
    expected = B @ np.linalg.inv(np.tril(L, -1) + np.eye(6, dtype=dtype))
    _solve_unit_lower_from_right(L, B)
    assert _close(B, expected)


def test_a_single_column_may_have_any_stride():
    C = np.lib.stride_tricks.as_strided(np.ones(5), (5, 1), (8, 8))
    _subtract_product(C, np.ones((5, 2), order="F"), np.ones((2, 1), order="F"))
    assert (C == -1).all()


def test_a_build_of_torch_without_blas_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(blas, "_LIBRARIES", (str(tmp_path / "libtorch_cpu.so"),))
    assert not blas._share()
