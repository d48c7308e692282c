"""What loops tell of pivots, where their random vectors are blind."""

import torch

from strategies.factors import lu_rank
from strategies.kernels.cpu import inspection
from strategies.kernels.cpu.loops.condition import first_vector
from strategies.kernels.cpu.loops.inspection import _FEW


def hidden_from_probes(n):
    """L whose inverse has a last row that is orthogonal to all vectors, weighted by the rows of L."""
    generator = torch.Generator().manual_seed(0)
    L = torch.rand(n, n, dtype=torch.float64, generator=generator).sub(0.5).tril(
        -1
    ) / 2 + torch.eye(n)
    base = 0.8 * torch.randn(n - 1, dtype=torch.float64, generator=generator)
    probes = torch.from_numpy(first_vector(_FEW * n)).reshape(_FEW, n)
    for _ in range(40):  # the weight of the last row depends on the row itself
        weighted = probes * L.norm(dim=1)
        others, last = weighted[:, :-1], weighted[:, -1]
        row = base - torch.linalg.pinv(others) @ (others @ base + last)
        L[-1, :-1] = -row @ L[:-1, :-1]
    return L


def test_a_pivot_that_is_roundoff_is_seen_where_its_row_hides():
    n = 40
    generator = torch.Generator().manual_seed(1)
    U = torch.randn(n, n, dtype=torch.float64, generator=generator).triu(1) * 0.3 + torch.eye(n)
    L = hidden_from_probes(n)
    pivots = torch.arange(1, n + 1, dtype=torch.int32)
    for pivot, may_be_roundoff in ((1e-15, True), (1.0, False)):
        U[-1, -1] = pivot
        LU = L.tril(-1) + U
        assert bool(lu_rank.regular_pivots(LU.unsqueeze(0))[0, -1]) is not may_be_roundoff
        found, _ = inspection.may_be_deficient(LU, pivots)
        assert bool(found) is may_be_roundoff
