"""Row swaps turned into orders of rows."""

import pytest
import torch

from strategies.factors import pivots as _pivots
from strategies.factors.pivots import _composed, inverse_order, order_of

SHAPES = [(1, 1), (4, 4), (7, 3), (3, 7), (33, 33), (5, 0)]


@pytest.mark.parametrize("batch", [(), (6,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_order_is_that_in_which_the_factors_have_the_rows(shape, batch):
    A = torch.randn(*batch, *shape)
    LU, pivots = torch.linalg.lu_factor(A)
    P, _, _ = torch.lu_unpack(LU, pivots)
    order = inverse_order(pivots, shape[0])
    rows = order.unsqueeze(-1).expand(*batch, shape[0], shape[0])
    assert torch.equal((torch.eye(shape[0]).expand(rows.shape)).gather(-2, rows), P)
    assert torch.equal(order_of(order_of(order)), order)


@pytest.mark.parametrize("batch", [(), (6,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_on_other_devices_it_is_the_same_without_a_loop(shape, batch, monkeypatch):
    monkeypatch.setattr(_pivots, "_SWAPS_AT_ONCE", 8)
    _, pivots = torch.linalg.lu_factor(torch.randn(*batch, *shape))
    assert torch.equal(_composed(pivots, shape[0]), inverse_order(pivots, shape[0]))
