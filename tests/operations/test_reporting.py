"""`inv_ex` and `solve_ex`: singular matrices in `info`, as PyTorch reports them."""

from __future__ import annotations

import functools

import pytest
import torch
from comparison import drawn, of_torch, require_alike, require_derivatives, with_gradients
from operations import ALL_DTYPES, each_dtype

import strategies
from strategies import linalg

each_strategy = pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
each_name = pytest.mark.parametrize("name", ["inv_ex", "solve_ex"])


def inputs_of(name, batch=(), dtype=torch.float64):
    A = drawn(*batch, 3, 3, dtype=dtype) + 3 * torch.eye(3)
    B = drawn(*batch, 3, 2, dtype=dtype, seed=1)
    return (A, B)[: 1 if name == "inv_ex" else 2]


def singular(name, batch=(2, 2)):
    A, *rest = inputs_of(name, batch)
    A[1, 0, 2] = 0
    return (A, *rest)


@each_name
@each_strategy
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_results_and_gradients_are_those_of_torch(name, strategy, dtype):
    for batch in ((), (2, 1), (0,)):
        inputs = [each.requires_grad_() for each in inputs_of(name, batch, dtype)]
        ours = functools.partial(getattr(linalg, name), strategy=strategy)
        require_alike(ours, of_torch(name), *inputs)


@each_name
@each_strategy
def test_a_singular_matrix_is_reported_where_torch_reports_it(name, strategy):
    inputs = [each.requires_grad_() for each in singular(name)]
    ours = functools.partial(getattr(linalg, name), strategy=strategy)
    require_alike(ours, of_torch(name), *inputs, equal_nan=True)
    _, info, *gradients = with_gradients(ours, *inputs)
    assert info.tolist() == [[0, 0], [3, 0]]
    assert gradients[0][0].isfinite().all()


@each_name
def test_checked_errors_are_torchs(name):
    with pytest.raises(torch.linalg.LinAlgError) as due:
        getattr(torch.linalg, name)(*singular(name), check_errors=True)
    with pytest.raises(torch.linalg.LinAlgError) as found:
        getattr(linalg, name)(*singular(name), check_errors=True)
    assert str(found.value) == str(due.value)


@each_name
@each_dtype
def test_all_orders_and_modes(name, dtype):
    leaves = [each.requires_grad_() for each in inputs_of(name, (2,), dtype)]

    require_derivatives(lambda *inputs: getattr(linalg, name)(*inputs)[0], leaves)
    plain = [each.detach() for each in leaves]
    mapped = torch.vmap(getattr(linalg, name))(*plain)
    torch.testing.assert_close(tuple(mapped), tuple(getattr(linalg, name)(*plain)))
