"""Least squares with tall matrices, row by row, against a strategy that knows no kernels."""

import torch

from strategies import linalg
from strategies.kernels.cpu import tall


def _gradients(strategy, A, B):
    A, B = A.detach().requires_grad_(), B.detach().requires_grad_()
    linalg.lstsq(A, B, strategy=strategy).solution.square().abs().sum().backward()
    return A.grad, B.grad


def test_gradients_are_those_of_an_svd_for_any_strides_and_number_of_right_hand_sides():
    for dtype in (torch.float64, torch.complex128):
        for batch in ((), (3,), (2, 2)):
            A = torch.randn(*batch, 60, 200, dtype=dtype).mT
            for k in (1, 4, 5):
                B = torch.randn(*batch, 200, 2 * k, dtype=dtype)[..., ::2]
                for given in (A, A.contiguous()):
                    ours, expected = (
                        _gradients(s, given, B) for s in ("batch_last", "svd_truncated_pinv")
                    )
                    for gradient, other in zip(ours, expected, strict=True):
                        error = torch.linalg.vector_norm(gradient - other)
                        assert error <= 1e-10 * torch.linalg.vector_norm(other)


def test_contiguous_matrices_with_few_right_hand_sides_are_supported():
    A, B = torch.empty(200, 60), torch.empty(200, 4)
    assert tall.supports(A, B)
    assert not tall.supports(A.mT.contiguous().mT, B)
    assert not tall.supports(A, torch.empty(200, 5))
    assert not tall.supports(A, torch.empty(200, 0))
    assert not tall.supports(A[:10], B[:10])
