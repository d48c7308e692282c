"""PyTorch's own samples and checks of operators, of replaced functions and of installed ones."""

import contextlib
import functools
from unittest import mock

import pytest
import torch
from comparison import drawn
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import strategies
from strategies import operations
from strategies.integration import replacement
from tests.autograd.plain_calls import needs_extension

pytest.importorskip("expecttest", reason="PyTorch's list of operations imports it")

with mock.patch.object(torch.backends, "disable_global_flags"):  # which other tests set
    from torch.testing._internal import composite_compliance, optests
    from torch.testing._internal.common_methods_invocations import op_db

NAMES = {str(function) for function in replacement.functions()}
OPS = [
    op
    for op in op_db
    # The gradients of lstsq are checked by a variant, as in PyTorch.
    if f"torch.{op.name}" in NAMES and op.full_name != "linalg.lstsq"
]
INSTALLED_NAMES = {calls.operator.partition(".")[0] for calls in operations.aten_calls()}
INSTALLED = [op for op in op_db if op.name.replace(".", "_") in INSTALLED_NAMES]
DTYPES = torch.float64, pytest.param(torch.complex128, marks=pytest.mark.slow)
FEW = 6
"""Samples of an operator for a check that PyTorch ships, from all of them at equal distances."""

QUICK = "linalg.inv_ex", "linalg.det", "linalg.lu_factor"
"""Whose samples are checked with operators installed, where not all are; every kind of triangular system
is in test_installation.py."""


def named(op):
    return op.formatted_name


def called(op):
    """What a program calls by that name now; the other variants are functions that call it."""
    if op.variant_test_name in ("", "hermitian"):
        return functools.reduce(getattr, op.name.split("."), torch)
    return op.op


def arguments(sample):
    return [sample.input, *sample.args]


def differentiable(op, sample):
    """The function of a sample's tensors that require a gradient, and those."""
    values = arguments(sample)
    needs = [isinstance(value, torch.Tensor) and value.requires_grad for value in values]

    def function(*given):
        following = iter(given)
        pairs = zip(values, needs, strict=True)
        every = [next(following) if need else value for value, need in pairs]
        output = op.gradcheck_wrapper(called(op), *every, **sample.kwargs)
        return sample.output_process_fn_grad(output)

    return function, tuple(value for value, need in zip(values, needs, strict=True) if need)


@pytest.fixture(params=["auto", pytest.param("a strategy", marks=pytest.mark.slow)])
def chosen(request, op):
    """What computes: for a strategy stands one of those that take the ranks of the samples."""
    name = "qr_pinv" if "lstsq" in op.name or "pinv" in op.name else "triangular_solve"
    with contextlib.nullcontext() if request.param == "auto" else strategies.use(name):
        yield


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=named)
def test_derivatives_of_both_orders(op, dtype, order, told, chosen):
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=True))
    assert samples
    for sample in samples:
        function, inputs = differentiable(op, sample)
        if order == 1:
            assert gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)
        elif op.supports_gradgrad:
            assert gradgradcheck(function, inputs, fast_mode=True)
    assert told() == []


def gradient(function, *given):
    """That of one combination of the outputs, differentiable."""
    outputs = [each for each in tree_leaves(function(*given)) if each.requires_grad]
    cotangents = [drawn(*each.shape, dtype=each.dtype, seed=i) for i, each in enumerate(outputs)]
    # In PyTorch 2.9 the determinant of an empty matrix does not depend on it.
    gradients = torch.autograd.grad(
        outputs, given, cotangents, create_graph=True, materialize_grads=True
    )
    return tuple(each for each in gradients if each.requires_grad)


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "op",
    [pytest.param(op, marks=[] if op.name in QUICK else pytest.mark.slow) for op in OPS],
    ids=named,
)
def test_installed_operators_have_values_and_derivatives_of_three_orders(op, dtype):
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        function, inputs = differentiable(op, sample)
        due = function(*inputs)
        with strategies.use("fused"), strategies.install():
            assert_close(function(*inputs), due)
            assert gradcheck(function, inputs, fast_mode=True, check_forward_ad=True)
            if op.supports_gradgrad:
                assert gradgradcheck(function, inputs, fast_mode=True)
                of_gradient = functools.partial(gradient, function)
                if of_gradient(*inputs):
                    assert gradgradcheck(of_gradient, inputs, fast_mode=True)


# Checks of operators that PyTorch ships say of installed ones what they say without.


def detached(sample):
    return [each.detach() if isinstance(each, torch.Tensor) else each for each in arguments(sample)]


def check_out(op, sample):
    given = detached(sample)
    due = op.op(*given, **sample.kwargs)
    out = [*map(torch.empty_like, tree_leaves(due))]
    op.op(*given, **sample.kwargs, out=out[0] if isinstance(due, torch.Tensor) else tuple(out))
    assert_close(out, tree_leaves(due))


def check_vmap(op, sample):
    given = detached(sample)
    axes = tuple(0 if isinstance(each, torch.Tensor) else None for each in given)
    pairs = zip(given, axes, strict=True)
    twice = [each if axis is None else torch.stack([each, each]) for each, axis in pairs]
    due = [torch.stack([each, each]) for each in tree_leaves(op.op(*given, **sample.kwargs))]
    found = torch.vmap(lambda *each: op.op(*each, **sample.kwargs), axes)(*twice)
    assert_close(tree_leaves(found), due)


CHECKS = {
    "out": check_out,
    "vmap": check_vmap,
    "forward mode": lambda op, sample: gradcheck(
        *differentiable(op, sample),
        fast_mode=True,
        check_backward_ad=False,
        check_forward_ad=True,
        check_batched_forward_grad=op.check_batched_forward_grad,
    ),
    "batched gradients": lambda op, sample: [
        check(*differentiable(op, sample), fast_mode=True, check_batched_grad=True)
        for check in (gradcheck, gradgradcheck)
    ],
    "forward over reverse": lambda op, sample: gradgradcheck(
        *differentiable(op, sample),
        fast_mode=True,
        check_undefined_grad=False,
        check_fwd_over_rev=True,
        check_rev_over_rev=False,
    ),
    "modes": lambda op, sample: composite_compliance.check_with_mode(
        op, arguments(sample), sample.kwargs, assert_close
    ),
    "subclasses": lambda op, sample: composite_compliance.check_all_permutations(
        op, arguments(sample), sample.kwargs, assert_close
    ),
    "backward of subclasses": lambda op, sample: composite_compliance.check_backward_formula(
        op.op,
        arguments(sample),
        sample.kwargs,
        sample.output_process_fn_grad,
        op.gradcheck_wrapper,
        assert_close,
    ),
    "forward mode of subclasses": lambda op, sample: composite_compliance.check_forward_ad_formula(
        op.op, arguments(sample), sample.kwargs, op.gradcheck_wrapper, assert_close
    ),
    "fake tensors": lambda op, sample: optests.fake_check(op.op, detached(sample), sample.kwargs),
    "traced graph": lambda op, sample: optests.make_fx_check(
        op.op, detached(sample), sample.kwargs, "fake", assert_close, randomize_data=False
    ),
    "compiled gradients": lambda op, sample: optests.aot_autograd_check(
        *differentiable(op, sample), {}, dynamic=False
    ),
}


def error_of(check, op, sample):
    """None where the check passes."""
    torch.manual_seed(0)
    try:
        check(op, sample)
    except Exception as error:  # noqa: BLE001 - whatever says that it does not pass
        return error
    return None


@needs_extension
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("op", [op for op in INSTALLED if op.supports_forward_ad], ids=named)
def test_checks_that_pass_without_pass_with_operators_installed(op, check, dtype):
    def errors():
        torch.manual_seed(0)
        samples = [*op.sample_inputs("cpu", dtype, requires_grad=True)]
        return [error_of(check, op, each) for each in samples[:: len(samples) // FEW + 1]]

    of_torch = errors()
    with strategies.use("fused"), strategies.install():
        found = errors()
    if None not in of_torch:
        pytest.skip(f"no sample passes with PyTorch alone: {of_torch[0]}")
    pairs = zip(found, of_torch, strict=True)
    broken = [error for error, without in pairs if error and not without]
    assert broken == []


@needs_extension
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize("op", [op for op in INSTALLED if op.error_inputs_func], ids=named)
def test_errors_are_those_that_pytorch_promises(op, is_installed):
    with strategies.install() if is_installed else contextlib.nullcontext():
        for each in op.error_inputs("cpu"):
            with pytest.raises(each.error_type, match=each.error_regex):
                op.op(*arguments(each.sample_input), **each.sample_input.kwargs)
