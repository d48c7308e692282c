"""`inv_ex` and `solve_ex`: singular matrices in `info`, as PyTorch reports them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

GENERATOR = torch.Generator().manual_seed(0)
DTYPES = [torch.float64, torch.complex128]
each_strategy = pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
each_name = pytest.mark.parametrize("name", ["inv_ex", "solve_ex"])


def inputs_of(name, batch=(), dtype=torch.float64):
    A = torch.randn(*batch, 3, 3, dtype=dtype, generator=GENERATOR) + 3 * torch.eye(3)
    B = torch.randn(*batch, 3, 2, dtype=dtype, generator=GENERATOR)
    return (A, B)[: 1 if name == "inv_ex" else 2]


def singular(name, batch=(2, 2)):
    A, *rest = inputs_of(name, batch)
    A[1, 0, 2] = 0
    return (A, *rest)


@each_name
@each_strategy
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32, torch.complex64], ids=str)
def test_results_and_gradients_are_those_of_torch(name, strategy, dtype):
    for batch in ((), (2, 1), (0,)):
        inputs, found = inputs_of(name, batch, dtype), []
        for module, options in ((torch.linalg, {}), (linalg, {"strategy": strategy})):
            leaves = [each.clone().requires_grad_() for each in inputs]
            value, info = getattr(module, name)(*leaves, **options)
            gradients = torch.autograd.grad(value.abs().square().sum(), leaves)
            found.append((value, info, *gradients))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)


@each_name
@each_strategy
def test_a_singular_matrix_is_reported_where_torch_reports_it(name, strategy):
    inputs = singular(name)
    leaves, others = ([each.clone().requires_grad_() for each in inputs] for _ in range(2))

    value, info = getattr(linalg, name)(*leaves, strategy=strategy)
    due, due_info = getattr(torch.linalg, name)(*others)

    assert torch.equal(info, due_info)
    assert info.tolist() == [[0, 0], [3, 0]]
    torch.testing.assert_close(value, due, equal_nan=True)
    gradients = torch.autograd.grad(value.square().sum(), leaves)
    expected = torch.autograd.grad(due.square().sum(), others)
    torch.testing.assert_close(gradients, expected, equal_nan=True)
    assert gradients[0][0].isfinite().all()


@each_name
def test_checked_errors_are_torchs(name):
    with pytest.raises(torch.linalg.LinAlgError) as due:
        getattr(torch.linalg, name)(*singular(name), check_errors=True)
    with pytest.raises(torch.linalg.LinAlgError) as found:
        getattr(linalg, name)(*singular(name), check_errors=True)
    assert str(found.value) == str(due.value)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("shapes", [((2, 3, 3), (3, 3)), ((3, 3), (2, 3, 3)), ((3, 3), (3,))])
def test_solve_ex_broadcasts_as_torch_does(left, shapes):
    A, B = (torch.randn(*shape, dtype=torch.float64) for shape in shapes)
    if not left and B.ndim == 1:
        pytest.skip("a vector is a column")
    for one, other in zip(
        linalg.solve_ex(A, B, left=left), torch.linalg.solve_ex(A, B, left=left), strict=True
    ):
        torch.testing.assert_close(one, other)


@each_name
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_orders_and_modes(name, dtype):
    leaves = [each.requires_grad_() for each in inputs_of(name, (2,), dtype)]

    def value(*inputs):
        return getattr(linalg, name)(*inputs)[0]

    assert gradcheck(value, leaves, fast_mode=True, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(value, leaves, fast_mode=True, check_fwd_over_rev=True)
    plain = [each.detach() for each in leaves]
    mapped = torch.vmap(getattr(linalg, name))(*plain)
    torch.testing.assert_close(tuple(mapped), tuple(getattr(linalg, name)(*plain)))
