"""The block that a loop is called with."""

import torch

from strategies.kernels.cpu.task import HEADER_WORDS, header, task


def test_it_begins_with_no_group_taken_and_the_sizes():
    assert task(5, 2, [], is_batch=True).tolist() == header(5, 2) == [0, 5, 2, 0, 0, 0, 0]


def test_an_argument_is_its_address_extents_and_strides():
    for tensor, extents, strides in (
        (torch.empty(5, 2, 3), [5, 2, 3], [6, 3, 1]),
        (torch.empty(5, 2, 3).mT, [5, 3, 2], [6, 1, 3]),
        (torch.empty(5, 2, dtype=torch.int64), [5, 2, 1], [2, 1, 1]),
        (torch.empty(1, 2, dtype=torch.bool).expand(5, 2), [5, 2, 1], [0, 1, 1]),
        (torch.empty(5), [5, 1, 1], [1, 1, 1]),
    ):
        words = task(5, 2, [tensor], is_batch=True)[HEADER_WORDS:].tolist()
        assert words == [tensor.data_ptr(), *extents, *strides]


def test_a_single_matrix_is_a_batch_of_one():
    tensor = torch.empty(2, 3)
    words = task(1, 1, [tensor], is_batch=False)[HEADER_WORDS:].tolist()
    assert words == [tensor.data_ptr(), 1, 2, 3, 0, 3, 1]
