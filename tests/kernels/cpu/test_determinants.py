"""Hard determinants of four to eight rows."""

import pytest
import torch

from strategies.linalg import det
from strategies.measuring.case import Case
from strategies.measuring.stability import measure_stability
from tests.kernels.cpu.by_plan import pivoted

SIZES = pytest.mark.parametrize("n", range(4, 9))


def gradient(A, strategy):
    A = A.detach().requires_grad_()
    return torch.autograd.grad(det(A, strategy=strategy).sum(), A)[0]


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
    found, due = gradient(A, "fused"), gradient(A, "triangular_solve")
    if kind == "deficient":  # of rank n − 2 the gradient is zero
        assert found.abs().max() < 1e-9 * A.abs().max() ** (n - 1)
    else:
        # The squares of a norm may be out of range.
        errors, sizes = ((each.abs().amax((-2, -1))) for each in (found - due, due))
        assert (errors <= 1e-8 * sizes).all()
