"""The test before an address is taken."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from strategies.kernels import memory

PLAIN = torch.ones(2, 2)


def seen_in(transform):
    """What a function is given in a transform of torch.func."""
    found = []

    def function(x):
        found.append(x)
        assert not memory.is_addressable(x)
        return x.sum()

    transform(function)(PLAIN)
    return found[0]


def fake():
    with FakeTensorMode():
        return torch.ones(2, 2)


def freed():
    tensor = torch.ones(2, 2)
    tensor.untyped_storage().resize_(0)
    return tensor


WITHOUT_MEMORY = {
    "subclass without storage": lambda: TwoTensor(PLAIN, PLAIN),
    "fake": fake,
    "meta": lambda: torch.ones(2, 2, device="meta"),
    "sparse": PLAIN.to_sparse,
    "of grad": lambda: seen_in(torch.func.grad),
    "of vmap": lambda: seen_in(torch.func.vmap),
    "of functionalize": lambda: seen_in(torch.func.functionalize),
    "freed": freed,
}
TO_BE_MADE = {
    "zeros": lambda: torch._efficientzerotensor(2, 2),
    "conjugate": lambda: torch.ones(2, 2, dtype=torch.complex64).conj(),
    "negative": lambda: torch._neg_view(PLAIN),
}
WITH_MEMORY = {
    "plain": lambda: PLAIN,
    "requires a gradient": lambda: torch.ones(2, 2, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 2)),
    "view": lambda: torch.ones(4, 4)[::2, ::2].mT,
    "subclass with storage": lambda: PLAIN.as_subclass(type("Own", (torch.Tensor,), {})),
    "empty": lambda: torch.ones(0, 2),
}


@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
def test_no_address_is_taken_of_what_has_no_memory(kind):
    tensor = WITHOUT_MEMORY[kind]()
    with pytest.raises(ValueError, match=r"of shape .* has no memory"):
        memory.address(tensor)


@pytest.mark.parametrize("kind", TO_BE_MADE)
def test_what_stands_for_other_numbers_is_written_to_memory_first(kind):
    tensor = TO_BE_MADE[kind]()
    assert not memory.is_addressable(tensor)
    assert memory.is_materializable(tensor)
    made = memory.materialized(tensor)
    assert memory.address(made) == made.data_ptr() != 0
    torch.testing.assert_close(made, tensor + 0)


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_other_tensors_are_taken_as_they_are(kind):
    tensor = WITH_MEMORY[kind]()
    assert memory.is_addressable(tensor)
    assert memory.materialized(tensor) is tensor
    assert memory.address(tensor) == tensor.data_ptr()


def test_a_shape_without_entries_takes_no_memory():
    shape = memory.without_entries(torch.ones(300, 400))
    assert shape.shape == (300, 400)
    assert shape.untyped_storage().nbytes() == 4
