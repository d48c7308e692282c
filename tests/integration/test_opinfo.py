"""PyTorch's own gradient samples, of replaced functions and installed operators, as PyTorch checks them."""

import contextlib
import functools
import logging
from unittest import mock

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies.integration import replacement
from strategies.kernels import extension

pytest.importorskip("expecttest", reason="PyTorch's list of operations imports it")

with mock.patch.object(torch.backends, "disable_global_flags"):  # which other tests set
    from torch.testing._internal.common_methods_invocations import op_db

NAMES = {str(function) for function in replacement.functions()}
OPS = [
    op
    for op in op_db
    # The gradients of lstsq are checked by a variant, as in PyTorch.
    if f"torch.{op.name}" in NAMES and op.full_name != "linalg.lstsq"
]
DTYPES = torch.float64, pytest.param(torch.complex128, marks=pytest.mark.slow)


QUICK = "linalg.inv_ex", "linalg.det", "linalg.lu_factor"
"""Whose samples are checked with operators installed, where not all are; every kind of triangular system
is in test_installation.py."""


def called(op):
    """What a program calls by that name now; the other variants are functions that call it."""
    if op.variant_test_name in ("", "hermitian"):
        return functools.reduce(getattr, op.name.split("."), torch)
    return op.op


def differentiable(op, sample):
    """The function of a sample's tensors that require a gradient, and those."""
    values = [sample.input, *sample.args]
    needs = [isinstance(value, torch.Tensor) and value.requires_grad for value in values]

    def function(*given):
        following = iter(given)
        pairs = zip(values, needs, strict=True)
        arguments = [next(following) if need else value for value, need in pairs]
        output = op.gradcheck_wrapper(called(op), *arguments, **sample.kwargs)
        return sample.output_process_fn_grad(output)

    return function, tuple(value for value, need in zip(values, needs, strict=True) if need)


@pytest.fixture
def reasons(caplog):
    """Why calls went to PyTorch, while everything is replaced."""
    replacement._told.clear()
    with caplog.at_level(logging.INFO, replacement.log.name), strategies.replace_torch():
        yield lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture(params=["auto", pytest.param("a strategy", marks=pytest.mark.slow)])
def chosen(request, op):
    """What computes: for a strategy stands one of those that take the ranks of the samples."""
    name = "qr_pinv" if "lstsq" in op.name or "pinv" in op.name else "triangular_solve"
    with contextlib.nullcontext() if request.param == "auto" else strategies.use(name):
        yield


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.formatted_name)
def test_derivatives_of_both_orders(op, dtype, order, reasons, chosen):
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=True))
    assert samples
    for sample in samples:
        function, inputs = differentiable(op, sample)
        if order == 1:
            assert gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)
        elif op.supports_gradgrad:
            assert gradgradcheck(function, inputs, fast_mode=True)
    assert reasons() == []


def gradient(function, *given):
    """That of one combination of the outputs, differentiable."""
    outputs = function(*given)
    outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
    outputs = [output for output in outputs if output.requires_grad]
    random = torch.Generator().manual_seed(0)
    cotangents = [
        torch.randn(output.shape, dtype=output.dtype, generator=random) for output in outputs
    ]
    # In PyTorch 2.9 the determinant of an empty matrix does not depend on it.
    gradients = torch.autograd.grad(
        outputs, given, cotangents, create_graph=True, materialize_grads=True
    )
    return tuple(each for each in gradients if each.requires_grad)


@pytest.mark.skipif(extension.load() is None, reason="the fast path was not built")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "op",
    [pytest.param(op, marks=[] if op.name in QUICK else pytest.mark.slow) for op in OPS],
    ids=lambda op: op.formatted_name,
)
def test_installed_operators_have_values_and_derivatives_of_three_orders(op, dtype):
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        function, inputs = differentiable(op, sample)
        due = function(*inputs)
        with strategies.use("fused"), strategies.install():
            torch.testing.assert_close(function(*inputs), due)
            assert gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)
            if op.supports_gradgrad:
                assert gradgradcheck(function, inputs, fast_mode=True)
                of_gradient = functools.partial(gradient, function)
                if of_gradient(*inputs):
                    assert gradgradcheck(of_gradient, inputs, fast_mode=True)
