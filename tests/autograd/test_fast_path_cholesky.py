"""Cholesky factors on the fast path."""

import pytest
import torch
from comparison import require_alike
from operations import each_dtype, function, reference

from strategies import linalg, operations
from strategies.measuring import Case
from tests.autograd.plain_calls import RHS, SQUARE, factor, positive

each_function = pytest.mark.parametrize(
    "operation", ["cholesky", "cholesky_solve", "cholesky_inverse"]
)


@pytest.mark.parametrize("n", [2, 30, 130])
@each_dtype
@each_function
def test_factors_of_any_size_give_the_gradient_of_torch(operation, n, dtype, taken):
    record = operations.get(operation)
    columns = 3 if record.arity == 2 else 1
    inputs = Case(operation, (n, n), 2, dtype, rhs=columns).inputs()
    require_alike(function(record, "fused"), reference(record), *inputs)
    assert taken == [True]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@each_function
def test_factors_far_from_one_take_the_generic_path(operation, scale, taken):
    A = (positive(SQUARE) if operation == "cholesky" else factor(SQUARE)) * scale
    inputs = (RHS[:4], A) if operation == "cholesky_solve" else (A,)
    results = [getattr(linalg, operation)(*inputs, strategy=s) for s in ("fused", "batch_last")]
    assert torch.equal(*results)
    assert set(taken) == {False}
