"""Calls of BLAS in compiled loops against NumPy's operators."""

import numba
import numpy as np
import pytest
import scipy.linalg

from strategies.kernels.cpu import blas

pytestmark = pytest.mark.skipif(not blas.IS_AVAILABLE, reason="torch does not export its BLAS")

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


def _is_close(result, expected, scale):
    """Entries may cancel: the error is compared with the size of what was computed with."""
    return np.linalg.norm(result - expected) <= 30 * np.finfo(result.dtype).eps * scale


def test_a_product_is_subtracted():
    norm = np.linalg.norm
    for dtype in DTYPES:
        for m, k, n in [(5, 3, 4), (1, 3, 1), (5, 1, 1), (70, 60, 50)]:
            C, A, B = _matrix(m, n, dtype), _matrix(m, k, dtype, 1), _matrix(k, n, dtype, 2)
            expected, scale = C - A @ B, norm(C) + norm(A) * norm(B)
            _subtract_product(C, A, B)
            assert _is_close(C, expected, scale)


def test_triangles_are_solved_with():
    for dtype in DTYPES:
        U = np.asfortranarray(_matrix(6, 6, dtype) + 5 * np.eye(6, dtype=dtype))
        L, B, C = np.asfortranarray(U / 6), _matrix(6, 4, dtype, 1), _matrix(4, 6, dtype, 2)
        from_left = scipy.linalg.solve_triangular(U, B)
        from_right = C @ np.linalg.inv(np.tril(L, -1) + np.eye(6, dtype=dtype))
        _solve_upper(U, B)
        _solve_unit_lower_from_right(L, C)
        assert _is_close(B, from_left, np.linalg.cond(U) * np.linalg.norm(from_left))
        assert _is_close(C, from_right, np.linalg.cond(L) * np.linalg.norm(from_right))


def test_a_single_column_may_have_any_stride():
    C = np.lib.stride_tricks.as_strided(np.ones(5), (5, 1), (8, 8))
    _subtract_product(C, np.ones((5, 2), order="F"), np.ones((2, 1), order="F"))
    assert (C == -1).all()


def test_a_build_of_torch_without_blas_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(blas, "_LIBRARIES", (str(tmp_path / "libtorch_cpu.so"),))
    assert not blas._share()
