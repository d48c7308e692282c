"""Factors in packs of matrices beside LAPACK's, which shares no code with them."""

import pytest
import torch
from comparison import drawn
from torch.utils._pytree import tree_leaves

from strategies import linalg
from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import lu_factor, qr

DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@DTYPE
def test_pivots_are_compared_as_in_lapack(dtype):
    A = drawn(500, 12, 12, dtype=dtype)
    expected = torch.linalg.lu_factor_ex(A).pivots
    assert torch.equal(lu_factor(A, strategy="batch_last").pivots, expected)


@DTYPE
def test_columns_whose_squares_overflow_or_vanish(dtype):
    numbers = torch.finfo(dtype)
    A = drawn(13, 7, 3, dtype=dtype) + 3 * torch.eye(7, 3, dtype=dtype)
    expected = torch.linalg.qr(A)
    for exponent in (-0.9, -0.6, 0.6, 0.9):
        scale = (numbers.max if exponent > 0 else 1 / numbers.tiny) ** exponent
        Q, R = qr(A * scale, strategy="batch_last")
        torch.testing.assert_close(Q, expected.Q)
        torch.testing.assert_close(R / scale, expected.R)


@DTYPE
def test_columns_of_subnormal_numbers(dtype):
    scale = torch.finfo(dtype).tiny / 8
    A = drawn(13, 7, 3, dtype=dtype) * scale
    Q, R = qr(A, strategy="batch_last")
    torch.testing.assert_close(Q.mH @ Q, torch.eye(3, dtype=dtype).expand(13, 3, 3))
    torch.testing.assert_close(Q @ R, A, rtol=0, atol=1e-4 * scale)


@DTYPE
def test_a_diagonal_changes_sign_for_the_smallest_entry_below(dtype):
    A = torch.eye(4, 3, dtype=dtype).repeat(13, 1, 1)
    A[:, 3] = torch.finfo(dtype).tiny ** 0.6
    torch.testing.assert_close(qr(A, strategy="batch_last"), torch.linalg.qr(A))


@DTYPE
def test_a_zero_column_is_passed_over(dtype):
    A = drawn(20, 6, 3, dtype=dtype)
    A[4, :, 1] = 0
    Q, R = qr(A, strategy="batch_last")
    torch.testing.assert_close(Q @ R, A)
    assert R[4, 1, 1] == 0


def test_what_is_not_a_number_stays_in_its_matrix():
    A = torch.eye(4).repeat(20, 1, 1)[..., :3]
    A[5, 1, 2] = torch.nan
    R = qr(A, strategy="batch_last").R
    assert R[5].isnan().any()
    assert R[torch.arange(20) != 5].isfinite().all()


OF_TORCH = {
    "inv": torch.linalg.inv,
    "solve": torch.linalg.solve,
    "lstsq": lambda A, B: torch.linalg.pinv(A) @ B,
    "pinv": torch.linalg.pinv,
    "lu_factor": lambda A: torch.linalg.lu_factor(A).LU,
    "det": torch.linalg.det,
    "slogdet": lambda A: sum(torch.linalg.slogdet(A)),
    "qr": lambda A: torch.cat(torch.linalg.qr(A), -2),
}
COMBINED = {"slogdet": sum, "qr": lambda found: torch.cat(found, -2)}
CASES = [
    *((name, 5, 5) for name in ("inv", "solve", "det", "slogdet", "lu_factor")),
    *((name, *shape) for name in ("lu_factor", "pinv", "lstsq") for shape in ((8, 3), (3, 7))),
    ("qr", 6, 4),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(13,), (130,), (2, 3, 4)])
@pytest.mark.parametrize(("name", "m", "n"), CASES)
def test_gradients_are_those_of_torch_by_cotangents_of_any_layout(name, m, n, batch, dtype):
    inputs = [drawn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)]
    if name in ("solve", "lstsq"):
        inputs.append(drawn(*batch, m, 2, dtype=dtype, seed=1))
    leaves = [each.clone().requires_grad_() for each in inputs]
    due, found = OF_TORCH[name](*leaves), getattr(linalg, name)(*leaves, strategy="batch_last")
    found = COMBINED[name](found) if name in COMBINED else tree_leaves(found)[0]
    G = drawn(*due.shape, dtype=due.dtype, seed=2)
    limit = 100 * torch.finfo(dtype).eps * torch.linalg.cond(inputs[0])
    by_columns = G.mT.contiguous().mT if G.ndim > 1 else G
    for cotangent in (G, by_columns, G.conj()):
        pairs = (torch.autograd.grad(y, leaves, cotangent, retain_graph=True) for y in (found, due))
        for ours, theirs in zip(*pairs, strict=True):
            errors, sizes = (each.norm(dim=(-2, -1)) for each in (ours - theirs, theirs))
            assert (errors <= limit * sizes).all()
            assert errors.norm() <= 300 * torch.finfo(dtype).eps * sizes.norm()


@pytest.mark.parametrize("name", ["inv", "lu_factor", "cholesky"])
def test_a_matrix_has_the_same_gradient_alone_and_in_any_batch(name):
    A = drawn(40, 6, 6, dtype=torch.float32)
    A = A @ A.mT + torch.eye(6)
    function = getattr(linalg, name)

    def gradient(A):
        A = A.detach().requires_grad_()
        result, *_ = tree_leaves(function(A, strategy="batch_last"))
        return torch.autograd.grad(result.square().sum(), A)[0]

    assert torch.equal(gradient(A)[7], gradient(A[7]))
