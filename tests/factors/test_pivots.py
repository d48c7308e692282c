"""Row swaps turned into orders of rows."""

import torch

from strategies.factors import pivots as module
from strategies.factors.pivots import inverse_order, order_of

CASES = [
    (*batch, *shape)
    for batch in ((), (6,), (2, 3), (0,))
    for shape in ((1, 1), (4, 4), (7, 3), (3, 7), (33, 33), (5, 0))
]


def test_the_order_is_that_in_which_the_factors_have_the_rows():
    for shape in CASES:
        *batch, m, _ = shape
        LU, pivots = torch.linalg.lu_factor(torch.randn(shape))
        P, _, _ = torch.lu_unpack(LU, pivots)
        order = inverse_order(pivots, m)
        rows = order.unsqueeze(-1).expand(*batch, m, m)
        assert torch.equal(torch.eye(m).expand(rows.shape).gather(-2, rows), P)
        assert torch.equal(order_of(order_of(order)), order)


def test_on_other_devices_it_is_the_same_without_a_loop(monkeypatch):
    monkeypatch.setattr(module, "_SWAPS_AT_ONCE", 8)
    for shape in CASES:
        _, pivots = torch.linalg.lu_factor(torch.randn(shape))
        composed = module._composed(pivots, shape[-2])
        assert torch.equal(composed, inverse_order(pivots, shape[-2]))
