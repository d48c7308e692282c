"""Which pivots may be roundoff: kernels beside operations of torch, and where random vectors are blind."""

import pytest
import torch

from strategies.factors import lu_rank
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.kernels.cpu import calls
from strategies.kernels.cpu.library import DTYPES

VECTORS, WITHOUT_VECTORS = 8, 24
"""Random vectors of the test that preselects, and rows up to which it is left out."""

DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def nearly_deficient(m, n, dtype):
    """Factors of matrices whose least singular value is from a tenth of roundoff to a thousand."""
    k, u = min(m, n), torch.finfo(dtype).eps
    found = []
    for multiple in torch.logspace(-1, 3, 9).tolist():
        A = torch.randn(40, m, n, dtype=dtype)
        U, _, Vh = torch.linalg.svd(A, full_matrices=False)
        values = torch.tensor(u * multiple, dtype=U.real.dtype) ** torch.linspace(0, 1, k)
        found.append((U * values) @ Vh * torch.logspace(-3, 3, n, dtype=U.real.dtype))
    LU, pivots, _ = torch.linalg.lu_factor_ex(torch.cat(found))
    return LU, calls.may_be_deficient(LU, pivots)[0]


@DTYPE
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 16, WITHOUT_VECTORS])
def test_a_small_square_is_in_doubt_exactly_if_a_pivot_is_irregular(n, dtype):
    LU, in_doubt = nearly_deficient(n, n, dtype)
    irregular = ~lu_rank.regular_pivots(LU).all(-1)
    assert in_doubt.equal(irregular)
    assert n == 1 or 0 < irregular.sum() < len(LU)


@DTYPE
@pytest.mark.parametrize("shape", [(40, 40), (3, 60), (5, 8), (60, 3), (12, 7), (30, 40)])
def test_whatever_has_no_rank_or_a_lower_one_is_in_doubt(shape, dtype):
    LU, in_doubt = nearly_deficient(*shape, dtype)
    is_full = lu_rank.ranks(LU) == min(shape)
    assert (in_doubt | is_full).all()
    assert not is_full.all()
    assert not in_doubt.all()


@DTYPE
@pytest.mark.parametrize("shape", [(8, 8), (18, 19), (40, 40)])
def test_what_is_in_doubt_does_not_depend_on_the_scale(shape, dtype):
    LU, in_doubt = nearly_deficient(*shape, dtype)
    far = 800 if torch.finfo(dtype).bits == 64 else 60
    pivots = torch.arange(1, min(shape) + 1, dtype=torch.int32).expand(len(LU), -1).contiguous()
    for power in (far, -far):
        scaled = LU.tril(-1) + times_power_of_two(LU.triu(), torch.tensor(power))
        assert calls.may_be_deficient(scaled, pivots)[0].equal(in_doubt)


@pytest.mark.parametrize("n", [WITHOUT_VECTORS, 2 * WITHOUT_VECTORS])
def test_a_pivot_is_in_doubt_beside_a_product_of_what_has_no_squares(n):
    LU = torch.eye(n, dtype=torch.float64) * 2.0**-240
    LU[0], LU[-1, 0], LU[-1, -1] = 2.0**299, 2.0**-538, 2.0**-295
    assert calls.may_be_deficient(LU.mT.contiguous().mT, torch.arange(1, n + 1, dtype=torch.int32))[
        0
    ]


@pytest.mark.parametrize("value", [0.0, torch.nan, torch.inf])
def test_a_pivot_that_is_zero_or_not_finite_is_in_doubt(value):
    for dtype in DTYPES:
        LU = torch.eye(4, dtype=dtype) + 0.1
        LU[2, 2] = value
        assert calls.may_be_deficient(LU, torch.arange(1, 5, dtype=torch.int32))[0]


def hidden_from_probes(n):
    """L whose inverse has a last row that is orthogonal to all vectors, weighted by the rows of L."""
    L = torch.rand(n, n, dtype=torch.float64).sub(0.5).tril(-1) / 2 + torch.eye(n)
    base = 0.8 * torch.randn(n - 1, dtype=torch.float64)
    waves = torch.cos(1.0 + torch.arange(VECTORS * n, dtype=torch.float64) ** 2)
    probes = (waves + waves.sign()).reshape(VECTORS, n)  # as in csrc/include/condition.hpp
    for _ in range(40):  # the weight of the last row depends on the row itself
        weighted = probes * L.norm(dim=1)
        others, last = weighted[:, :-1], weighted[:, -1]
        row = base - torch.linalg.pinv(others) @ (others @ base + last)
        L[-1, :-1] = -row @ L[:-1, :-1]
    return L


def test_a_pivot_that_is_roundoff_is_seen_where_its_row_hides():
    n = 40
    U = torch.randn(n, n, dtype=torch.float64).triu(1) * 0.3 + torch.eye(n)
    L = hidden_from_probes(n)
    pivots = torch.arange(1, n + 1, dtype=torch.int32)
    for pivot, may_be_roundoff in ((1e-15, True), (1.0, False)):
        U[-1, -1] = pivot
        LU = L.tril(-1) + U
        assert bool(lu_rank.regular_pivots(LU.unsqueeze(0))[0, -1]) is not may_be_roundoff
        found, _ = calls.may_be_deficient(LU, pivots)
        assert bool(found) is may_be_roundoff
