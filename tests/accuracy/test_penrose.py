import pytest
import torch

from strategies.accuracy import gallery, measures
from strategies.accuracy.penrose import penrose_residuals
from strategies.formulas.amplification import unit_roundoff


def test_small_for_the_pseudoinverse():
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        for shape in ((7, 4), (4, 7), (5, 5)):
            a = gallery.random_with_rank(shape, dtype, 3, (2,))
            bound = measures.PASS_BELOW * a.condition * unit_roundoff(dtype)
            residuals = penrose_residuals(a.matrix, torch.linalg.pinv(a.matrix, rtol=1e-5))
            for residual in residuals.values():
                assert residual.shape == (2,)
                assert (residual < bound).all()


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_ends_of_the_range(scale):
    a = gallery.random_with_rank((6, 4), torch.float64, 4).matrix
    residuals = penrose_residuals(a * scale, torch.linalg.pinv(a) / scale)
    assert all(residual < 1e-14 for residual in residuals.values())


@pytest.mark.parametrize("factor", [2.0, -1.0])
def test_a_multiple_breaks_the_first_two(factor):
    a = gallery.random_with_rank((6, 4), torch.float64, 4).matrix
    residuals = penrose_residuals(a, factor * torch.linalg.pinv(a))
    assert [bool(residual > 1e-3) for residual in residuals.values()] == [True, True, False, False]


@pytest.mark.parametrize("side", ["range", "corange"])
def test_symmetry_catches_a_generalized_inverse(side):
    """A⁺ + N with N vanishing on one side is a {1, 2} inverse, but AX or XA is not Hermitian."""
    a = gallery.random_with_rank((6, 4), torch.float64, 2).matrix
    x = torch.linalg.pinv(a, rtol=1e-9)
    noise = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    off_range, off_corange = torch.eye(6) - a @ x, torch.eye(4) - x @ a
    other = x + (x @ a @ noise @ off_range if side == "range" else off_corange @ noise @ a @ x)
    residuals = penrose_residuals(a, other)
    expected = [False, False, side == "range", side == "corange"]
    assert [bool(residual > 1e-3) for residual in residuals.values()] == expected


def test_zero_for_zero():
    assert not any(penrose_residuals(torch.zeros(3, 2), torch.zeros(2, 3)).values())
