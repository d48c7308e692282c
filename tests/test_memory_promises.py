"""What the backward may hold at its peak, above its graph: DESIGN's promises for thin matrices."""

import math

import pytest
import torch

import strategies
from strategies import linalg
from strategies.measuring import Case, backward_of, forward_backward_of, peak_bytes

OURS = [name for name in strategies.available() if name != "native"]
MB = 10**6


def peak_in_inputs(case, strategy):
    """The peak of the backward in units of A."""
    return peak_bytes(backward_of(case, strategy)) / case.inputs()[0].nbytes


@pytest.mark.parametrize(
    ("shape", "limit"),
    [
        # One copy, where the loop is compiled; else the gather of its rows, too, and O(64 n).
        *(((n, n), 2.02) for n in (512, 1024)),
        *((shape, 2.1) for shape in ((8192, 64), (64, 8192), (2048, 256))),
    ],
)
def test_lu_reverses_in_two_matrices(shape, limit):
    assert peak_in_inputs(Case("lu_factor", shape), "blocked_lu") <= limit


@pytest.mark.parametrize(("operation", "limit"), [("pinv", 3), ("lstsq", 2)])
@pytest.mark.parametrize("shape", [(4096, 32), (8192, 64)])
@pytest.mark.parametrize("strategy", OURS)
def test_thin_matrices_make_nothing_square(operation, limit, shape, strategy):
    assert peak_in_inputs(Case(operation, shape), strategy) <= limit


@pytest.mark.parametrize(
    ("operation", "shape", "limit"),
    [
        ("pinv", (200_000, 4), 100 * MB),
        ("lstsq", (200_000, 4), 100 * MB),
        ("pinv", (400_000, 2), 200 * MB),
        ("pinv", (2, 400_000), 200 * MB),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else None,
)
@pytest.mark.parametrize("strategy", OURS)
def test_very_thin_matrices_fit(operation, shape, limit, strategy):
    peak = peak_bytes(forward_backward_of(Case(operation, shape), strategy))
    assert math.prod(shape) * 8 <= peak < limit


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("strategy", ["auto", "triangular_solve"])
@pytest.mark.parametrize(
    "solve",
    [
        lambda LU, B, pivots, **by: linalg.lu_solve(LU, pivots, B, **by),
        lambda LU, B, _, **by: linalg.solve_triangular(LU, B, upper=True, **by),
        lambda LU, B, _, **by: linalg.cholesky_solve(B, LU, **by),
    ],
    ids=["lu_solve", "solve_triangular", "cholesky_solve"],
)
def test_solves_by_triangles_make_nothing_square_but_the_gradient(solve, strategy, dtype):
    A = torch.randn(1024, 1024, dtype=dtype) + 100 * torch.eye(1024)
    LU, pivots = torch.linalg.lu_factor(A)
    B = torch.randn(1024, 1, dtype=dtype)
    leaves = LU.requires_grad_(), B.requires_grad_()
    X = solve(*leaves, pivots, strategy=strategy)
    cotangent = torch.randn_like(X)
    peak = peak_bytes(lambda: torch.autograd.grad(X, leaves, cotangent, retain_graph=True))
    assert peak <= 1.1 * A.nbytes
