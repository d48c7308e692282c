"""Usual calls of the public functions, which the fast path in C++ computes without Python."""

import pytest
import torch
from arguments import ARGUMENTS, OPTIONS, A
from comparison import of_torch
from torch.utils._pytree import tree_leaves

from strategies import linalg, operations
from strategies.operations.traceable import usual_calls
from tests.autograd.plain_calls import needs_extension

pytestmark = needs_extension

NAMES = sorted({calls.function for calls in operations.aten_calls()})
each_function = pytest.mark.parametrize("name", NAMES)


def arguments_of(name):
    return ARGUMENTS[name], OPTIONS.get(name, {})


def compute(name, given, options):
    return usual_calls(getattr(linalg, name).__wrapped__)(given, options)


@each_function
def test_the_result_is_that_of_the_function(name):
    given, options = arguments_of(name)
    found, expected = compute(name, given, options), getattr(linalg, name)(*given, **options)
    assert type(found) is type(expected)
    expected = of_torch(name)(*given, **options)
    for ours, due in zip(*map(tree_leaves, (found, expected)), strict=True):
        if ours.numel() == due.numel():  # of least squares ours are more
            torch.testing.assert_close(ours, due)


@each_function
def test_arguments_may_be_given_by_name(name):
    given, options = arguments_of(name)
    names = getattr(linalg, name).__wrapped__.__code__.co_varnames
    by_name = options | dict(zip(names, given, strict=False))
    assert compute(name, (), by_name) is not None


@each_function
def test_what_is_no_usual_call_is_left_to_the_function(name):
    given, options = arguments_of(name)
    assert compute(name, given, options | {"unknown": 1}) is None
    assert compute(name, (*given, *[None] * 9), options) is None
    assert compute(name, given[1:], options) is None
    assert compute(name, (None, *given[1:]), options) is None
    assert compute(name, given, options | {"strategy": "native"}) is None
    assert compute(name, (torch.nn.Buffer(given[0]).to("meta"), *given[1:]), options) is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lu_factor", {"pivot": False}),
        ("qr", {"mode": "r"}),
        ("cholesky", {"upper": True}),
        ("inv_ex", {"check_errors": 1}),
        ("pinv", {"rtol": 0.1}),
        ("pinv", {"hermitian": True}),
        ("lstsq", {"driver": "gelsd"}),
    ],
)
def test_an_option_that_is_not_usual_is_left_to_the_function(name, options):
    given, required = arguments_of(name)
    assert compute(name, given, required | options) is None


def test_modes_of_torch_see_the_function():
    for mode in (torch.autocast("cpu"), torch.device("cpu")):
        with mode:
            assert compute("inv", (A,), {}) is None
    assert compute("inv", (A,), {}) is not None


@pytest.mark.parametrize("batch", [(), (3,)])
def test_what_the_kernels_decline_goes_on_to_the_function(batch):
    A = 1e-200 * torch.eye(3, dtype=torch.float64).expand(*batch, 3, 3)
    assert compute("inv_ex", (A,), {}) is None
    torch.testing.assert_close(tuple(linalg.inv_ex(A)), tuple(torch.linalg.inv_ex(A)))
