"""Peak memory, of allocations that are known."""

import pytest
import torch

from strategies.measuring import peak_bytes

MB = 10**6


def block(megabytes, device="cpu"):
    return torch.empty(megabytes * MB, dtype=torch.uint8, device=device)


def peak_megabytes(call, device):
    # CUDA's allocator hands out multiples of 2 MB.
    return pytest.approx(peak_bytes(call, device) / MB, abs=0 if device == "cpu" else 2.2)


def one_after_the_other(device):
    first = block(8, device)
    del first
    second = block(20, device)
    del second
    return block(4, device)


@pytest.mark.parametrize(
    ("call", "megabytes"),
    [
        (lambda _: None, 0),
        (lambda device: block(8, device), 8),
        (one_after_the_other, 20),
        (lambda device: (block(8, device), block(20, device)), 28),
    ],
    ids=["nothing", "what is returned", "temporaries while they live", "those that live together"],
)
def test_what_lives_at_once_counts(device, call, megabytes):
    assert peak_megabytes(lambda: call(device), device) == megabytes


def test_memory_from_before_does_not_count(device):
    kept = block(40, device)
    assert peak_megabytes(lambda: (kept[:3], block(8, device)), device) == 8


def test_release_of_older_memory_is_no_credit():
    older = [block(40)]

    def call():
        older.clear()
        return block(8)

    assert peak_bytes(call) == 8 * MB


def test_memory_inside_torch_operations_counts():
    a = torch.eye(100, dtype=torch.float64)
    # The product, and the sum of both.
    assert peak_bytes(lambda: a @ a + a) == 2 * a.nbytes


def test_a_backward_counts_its_gradients():
    a = torch.ones(1000, dtype=torch.float64, requires_grad=True)
    out = a.exp()
    cotangent = torch.ones_like(out)
    assert peak_bytes(lambda: torch.autograd.grad(out, a, cotangent, retain_graph=True)) == 8000
