import math

import pytest
import torch
from torch import Tensor

from strategies.accuracy import gallery, gradient, lu_gradient_at_factors, measures

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _randn_like(tensor: Tensor, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)


@pytest.mark.parametrize("operation", ["lu_factor", "pinv", "inv"])
def test_autograd_passes_the_ratio_on_regular_matrices(operation: str) -> None:
    for dtype in DTYPES:
        for name in set(gallery.WELL_POSED) - {"wilkinson_growth"}:
            matrix = gallery.make(name, (16, 16), dtype).matrix.requires_grad_()
            pivots = None
            output = getattr(torch.linalg, operation)(matrix)
            if operation == "lu_factor":
                output, pivots = output
            cotangent = _randn_like(output)
            computed = torch.autograd.grad(output, matrix, cotangent)
            exact = gradient(operation, (matrix,), (cotangent,), pivots=pivots)
            bound = measures.amplification(operation, (matrix,), (cotangent,))
            ratio = measures.error_ratio(exact.relative_error(computed), bound, dtype)
            assert ratio < measures.PASS_BELOW, (name, dtype)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)], ids=str)
def test_stable_least_squares_passes_the_ratio(shape: tuple[int, int]) -> None:
    for dtype in DTYPES:
        for noise in (0.0, 1.0):
            a = gallery.random_with_condition(shape, dtype, 3).matrix
            b = a @ _randn_like(a[0, :, None], 1) + noise * _randn_like(a[:, :1], 2)
            tall = shape[0] > shape[1]
            q, r = torch.linalg.qr(a if tall else a.mH)

            def along_r(rhs: Tensor, q: Tensor = q, r: Tensor = r) -> Tensor:
                return torch.linalg.solve_triangular(r, q.mH @ rhs, upper=True)

            def against_r(rhs: Tensor, q: Tensor = q, r: Tensor = r) -> Tensor:
                return q @ torch.linalg.solve_triangular(r.mH, rhs, upper=False)

            apply, apply_adjoint = (along_r, against_r) if tall else (against_r, along_r)
            g = _randn_like(a[:1].mT, 3)
            x, z = apply(b), apply_adjoint(g)
            a_bar = (b - a @ x) @ apply(z).mH - z @ x.mH + apply_adjoint(x) @ (g - apply(a @ g)).mH
            error = gradient("lstsq", (a, b), (g,)).relative_error((a_bar, z))
            bound = measures.amplification("lstsq", (a, b), (g,))
            assert measures.error_ratio(error, bound, dtype) < measures.PASS_BELOW


def test_added_error_excludes_the_factorization() -> None:
    a = gallery.make("random_condition_root", (16, 16), torch.float64).matrix.requires_grad_()
    packed, pivots = torch.linalg.lu_factor(a)
    g = _randn_like(packed)
    computed = torch.autograd.grad(packed, a, g)
    added = lu_gradient_at_factors(packed.detach(), pivots, g).relative_error(computed)
    total = gradient("lu_factor", (a,), (g,), pivots=pivots).relative_error(computed)
    assert added < total / 10


def test_ratio_is_the_worst_of_the_batch() -> None:
    error, bound = torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0])
    assert measures.error_ratio(error * 2.0**-53, bound, torch.float64) == 2.0


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_ratio_of_what_is_not_finite_is_infinite(error: float) -> None:
    assert measures.error_ratio(error, 1.0, torch.float64) == math.inf
