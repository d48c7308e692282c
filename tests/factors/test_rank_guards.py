"""What strategies refuse: near deficiency, growth in elimination, singular matrices."""

import pytest
import torch

from strategies import linalg
from strategies.accuracy import gallery, gradient
from strategies.errors import LinAlgError

FULL_RANK_ONLY = ("triangular_solve", "explicit_inverse")
ANY_RANK = ("qr_pinv", "svd_truncated_pinv", "fused", "batch_last")
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _kahan():
    return gallery.make("kahan", (90, 90), torch.float64).matrix


def _wilkinson(dtype):
    return gallery.make("wilkinson_growth", (24, 24), dtype).matrix


def _integers(m, n):
    return torch.randint(-4, 5, (m, n)).double()


def test_a_small_singular_value_that_no_pivot_shows_is_refused():
    A = _kahan()
    assert A.diagonal().abs().min() > 1e-6
    tall = torch.cat([A, torch.zeros_like(A)])
    for strategy in FULL_RANK_ONLY:
        for matrix in (A, tall):
            for call in (linalg.pinv, lambda A, **s: linalg.lstsq(A, A[:, :1], **s)):
                with pytest.raises(LinAlgError, match="full rank"):
                    call(matrix, strategy=strategy)


def test_the_rank_is_that_of_the_singular_values():
    matrices = [_kahan(), torch.zeros(4, 3).double()]
    for m, n, rank in ((2, 2, 1), (8, 8, 3), (16, 4, 2), (40, 10, 7)):
        matrices += [_integers(m, rank) @ _integers(rank, n) for _ in range(20)]
        repeated = torch.randn(m, n, dtype=torch.float64)
        repeated[:, rank:] = repeated[:, : n - rank][:, : max(1, n - rank)]
        matrices.append(repeated)
    for A in matrices:
        found = {int(linalg.lstsq(A, A[:, :1], strategy=strategy).rank) for strategy in ANY_RANK}
        assert found == {int(torch.linalg.matrix_rank(A))}


def test_growth_in_elimination_is_refused_and_auto_gets_by():
    for dtype in DTYPES:
        A = _wilkinson(dtype)
        for strategy in FULL_RANK_ONLY:
            for matrix in (A, A.expand(20, 24, 24)):
                with pytest.raises(LinAlgError, match="digits are lost"):
                    linalg.inv(matrix, strategy=strategy)
                with pytest.raises(LinAlgError, match="digits are lost"):
                    linalg.solve(matrix, matrix[..., :1], strategy=strategy)
        for strategy in ("auto", "fused", "qr_pinv"):
            first = torch.eye(24, 1, dtype=dtype)
            error = linalg.solve(A, A[:, :1], strategy=strategy) - first
            assert error.abs().max() < 1e3 * torch.finfo(dtype).eps
            assert linalg.inv(A, strategy=strategy).isfinite().all()


def test_the_gradient_of_a_matrix_that_grows_is_accurate_by_qr():
    A, G = _wilkinson(torch.float64).requires_grad_(), torch.randn(24, 24, dtype=torch.float64)
    (found,) = torch.autograd.grad(linalg.inv(A, strategy="qr_pinv"), A, G)
    assert gradient("inv", (A.detach(),), (G,)).relative_error((found,)) < 1e-12


def test_singular_matrices_are_refused_and_nearly_singular_ones_inverted():
    singular = torch.randn(5, 5, dtype=torch.float64)
    singular[2] = singular[0]
    near = torch.diag(torch.tensor([1.0, 1e-30], dtype=torch.float64))
    for strategy in (*FULL_RANK_ONLY, *ANY_RANK, "auto"):
        with pytest.raises(LinAlgError):
            linalg.inv(singular, strategy=strategy)
        assert linalg.inv(near, strategy=strategy)[1, 1] == pytest.approx(1e30)


def test_ordinary_matrices_are_not_refused():
    for dtype in DTYPES:
        for n in (1, 5, 12, 70):
            A = torch.linalg.qr(torch.randn(n, n, dtype=dtype))[0]
            for strategy in (*FULL_RANK_ONLY, *ANY_RANK):
                linalg.inv(A, strategy=strategy)
                linalg.pinv(A, strategy=strategy)


def _of_hidden_null_vectors():
    """Orthogonal to the vector that inverse iteration begins with."""
    generator = torch.Generator().manual_seed(0)
    for largest in (*[24] * 60, *[9] * 300):  # matrices of few entries have kernels of their own
        n = int(torch.randint(2, largest, (), generator=generator))
        m = n + int(torch.randint(0, 10, (), generator=generator))
        wave = torch.cos(1 + torch.arange(n, dtype=torch.float64).square())
        first = wave + wave.sign()
        v = torch.randn(n, dtype=torch.float64, generator=generator)
        v -= first * (v @ first) / (first @ first)
        A = torch.randn(m, n, dtype=torch.float64, generator=generator)
        yield A - torch.outer(A @ v, v) / (v @ v)


@pytest.mark.parametrize("strategy", FULL_RANK_ONLY + ANY_RANK)
def test_a_null_vector_that_hides_from_the_estimate_is_seen(strategy):
    for A in _of_hidden_null_vectors():
        b = torch.ones(len(A), 1, dtype=torch.float64)
        if strategy in ANY_RANK:
            assert int(linalg.lstsq(A, b, strategy=strategy).rank) == A.shape[1] - 1
            continue
        with pytest.raises(LinAlgError):
            linalg.pinv(A, strategy=strategy)
        with pytest.raises(LinAlgError):
            linalg.lstsq(A, b, strategy=strategy)
