"""Determinants of up to eight rows, beside PyTorch in double precision and the general code."""

import pytest
import torch

from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import det, slogdet
from strategies.measuring.case import Case
from strategies.measuring.stability import measure_stability
from strategies.testing.problems import doubled
from tests.kernels.cpu.by_plan import pivoted

SIZES = pytest.mark.parametrize("n", range(4, 9))
DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def gradient(function, A):
    A = A.detach().requires_grad_()
    return torch.autograd.grad(function(A).real.sum(), A)[0]


@DTYPE
@SIZES
def test_a_determinant_and_its_gradient(n, dtype):
    A = pivoted(n, dtype, 60)
    wide = doubled(A)
    eps = torch.finfo(dtype).eps
    due = torch.linalg.det(wide)
    assert ((det(A, strategy="fused") - due).abs() <= 1e3 * eps * due.abs()).all()
    expected = gradient(torch.linalg.det, wide)
    found = gradient(lambda A: det(A, strategy="fused"), A)
    errors = torch.linalg.matrix_norm(found - expected) / torch.linalg.matrix_norm(expected)
    assert errors.max() < 1e4 * eps


@DTYPE
@pytest.mark.parametrize("n", range(1, 9))
def test_its_sign_and_logarithm(n, dtype):
    A = pivoted(n, dtype, 60)
    wide = doubled(A)
    found, due = slogdet(A, strategy="fused"), torch.linalg.slogdet(wide)
    assert (found.sign - due.sign).abs().max() < 1e3 * torch.finfo(dtype).eps
    assert (found.logabsdet - due.logabsdet).abs().max() < 1e3 * torch.finfo(dtype).eps


@DTYPE
@pytest.mark.parametrize("n", range(1, 9))
def test_the_gradients_of_its_sign_and_logarithm(n, dtype):
    def loss(function, A):
        sign, logabsdet = function(A)
        weights = torch.linspace(-2, 3, len(A), dtype=A.real.dtype)
        return ((sign * (1 - 0.5j)).real * weights + logabsdet * weights.flip(0)).unsqueeze(-1)

    A = pivoted(n, dtype, 60)
    wide = doubled(A)
    expected = gradient(lambda A: loss(torch.linalg.slogdet, A), wide)
    found = gradient(lambda A: loss(lambda A: slogdet(A, strategy="fused"), A), A)
    errors = torch.linalg.matrix_norm(found - expected) / torch.linalg.matrix_norm(expected)
    assert errors.max() < 1e4 * torch.finfo(dtype).eps


@SIZES
@pytest.mark.parametrize("operation", ["det", "slogdet"])
def test_several_negligible_pivots_cost_no_digits(operation, n):
    case = Case.parse(f"{operation} 20x{n}x{n} cond=1e13.5")
    (found,) = measure_stability(case, ["fused"])
    assert found.stability is not None
    assert found.stability.worst < 100


@SIZES
@pytest.mark.parametrize("kind", ["rows", "columns", "far", "singular", "deficient", "zero row"])
def test_what_is_not_easy_is_computed_as_by_other_strategies(n, kind):
    A = pivoted(n, torch.float64, 60)
    scales = 10.0 ** torch.linspace(-12, 12, n, dtype=torch.float64)
    match kind:
        case "rows":
            A *= scales[:, None]
        case "columns":
            A *= scales
        case "far":
            A *= 1e-38
        case "singular":
            A[:, -1] = A[:, 0]
        case "deficient":
            A[:, -2:] = A[:, :2]
        case "zero row":
            A[:, 1] = 0
    found, due = (
        gradient(lambda A, name=name: det(A, strategy=name), A)
        for name in ("fused", "triangular_solve")
    )
    if kind == "deficient":  # of rank n − 2 the gradient is zero
        assert found.abs().max() < 1e-9 * A.abs().max() ** (n - 1)
    else:
        # The squares of a norm may be out of range.
        errors, sizes = ((each.abs().amax((-2, -1))) for each in (found - due, due))
        assert (errors <= 1e-8 * sizes).all()
