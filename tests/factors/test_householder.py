"""Q from reflectors in products and solves, which only batches on CUDA devices take otherwise."""

import pytest
import torch

from strategies.factors import householder


@pytest.fixture(autouse=True)
def by_products(monkeypatch):
    monkeypatch.setattr(householder, "is_batch_on_cuda", lambda matrices: matrices.ndim > 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 5), (4, 9, 3), (2, 1, 1), (2, 4, 1), (2, 3, 6, 4)])
def test_it_is_that_of_lapack(shape, dtype):
    A = torch.randn(*shape, dtype=dtype)
    A[0, ..., 0] = 0  # a column that is not reflected
    x = torch.randn(*shape[:-1], 2, dtype=dtype)
    Q, R = householder.qr(A)
    reflectors, scales = torch.geqrf(A)
    torch.testing.assert_close(Q @ R, A)
    torch.testing.assert_close(Q.mH @ Q, torch.eye(shape[-1], dtype=dtype).expand_as(Q.mH @ Q))
    torch.testing.assert_close(Q, torch.linalg.householder_product(reflectors, scales))
    for adjoint in (False, True):
        found = householder.apply(reflectors, scales, x, adjoint=adjoint)
        torch.testing.assert_close(found, torch.ormqr(reflectors, scales, x, transpose=adjoint))
