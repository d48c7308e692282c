"""`pinv` and `lstsq` of batches in which ranks differ."""

import pytest
import torch

from strategies import linalg


@pytest.mark.parametrize("is_tall", [False, True])
def test_tangents_of_rows_of_unlike_length_beside_a_deficient_matrix(is_tall):
    """With nonsingular F, and K of full row rank, (F K)⁺ is K⁺F⁻¹."""
    F = torch.tensor([[2.0**-25, 0], [-(2.0**-24), 1]], dtype=torch.float64)
    K, of_K = torch.tensor(
        [[[-1, 1, 1], [-16, 12, 0]], [[5, 7, -3], [64, 96, -16]]], dtype=torch.float64
    )
    inverse = torch.tensor([[2.0**25, 0], [2, 1]], dtype=torch.float64)
    expected = torch.func.jvp(torch.linalg.pinv, (K,), (of_K,))[1] @ inverse
    A = torch.stack([F @ K, torch.ones(2, 3, dtype=torch.float64)])
    tangent = torch.stack([F @ of_K, torch.zeros(2, 3, dtype=torch.float64)])
    if is_tall:
        A, tangent, expected = A.mT, tangent.mT, expected.T
    _, found = torch.func.jvp(linalg.pinv, (A,), (tangent,))
    torch.testing.assert_close(found[0], expected, rtol=1e-12, atol=0)
    B = torch.arange(1.0, 1 + A.shape[-2], dtype=torch.float64).expand(2, 1, -1).mT
    _, found = torch.func.jvp(lambda A: linalg.lstsq(A, B).solution, (A,), (tangent,))
    torch.testing.assert_close(found[0], expected @ B[0], rtol=1e-12, atol=0)
