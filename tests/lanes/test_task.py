"""The block that a kernel is called with."""

import pytest
import torch

from strategies.lanes.task import task


def test_it_begins_with_no_group_taken_and_the_sizes():
    assert task(5, 2, []).tolist() == [0, 5, 2]


@pytest.mark.parametrize(
    ("tensor", "extents", "strides"),
    [
        (torch.empty(5, 2, 3), [5, 2, 3], [6, 3, 1]),
        (torch.empty(5, 2, 3).mT, [5, 3, 2], [6, 1, 3]),
        (torch.empty(5, 2, dtype=torch.int64), [5, 2, 0], [2, 1, 0]),
        (torch.empty(1, 2, dtype=torch.bool).expand(5, 2), [5, 2, 0], [0, 1, 0]),
    ],
    ids=["rows", "columns", "two dimensions", "expanded"],
)
def test_an_argument_is_its_address_extents_and_strides(tensor, extents, strides):
    assert task(5, 2, [tensor])[3:].tolist() == [tensor.data_ptr(), *extents, *strides]
