"""Checks of operators that PyTorch ships for its own suite say of installed ones what they say without."""

import contextlib
from unittest import mock

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

import strategies
from strategies import operations
from strategies.kernels import extension

pytest.importorskip("expecttest", reason="PyTorch's list of operations imports it")

with mock.patch.object(torch.backends, "disable_global_flags"):  # which other tests set
    from torch.testing._internal import composite_compliance, optests
    from torch.testing._internal.common_methods_invocations import op_db

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(extension.load() is None, reason="the fast path was not built"),
    pytest.mark.filterwarnings("ignore"),
]

NAMES = {calls.operator.partition(".")[0] for calls in operations.aten_calls()}
OPS = [op for op in op_db if op.name.replace(".", "_") in NAMES]
DERIVED = [op for op in OPS if op.supports_forward_ad]
DTYPES = torch.float64, torch.complex128
FEW = 6
"""Samples of an operator that are checked, from all of them at equal distances."""


def function(op):
    """Of the tensors of a sample, and of its other arguments: what is differentiable of the outputs."""

    def called(*arguments, **options):
        return op.gradcheck_wrapper(op.op, *arguments, **options)

    return called


def arguments(sample):
    return [sample.input, *sample.args]


def of_inputs(op, sample):
    """The function of inputs that require a gradient, and these."""
    values = arguments(sample)
    needs = [isinstance(value, torch.Tensor) and value.requires_grad for value in values]

    def called(*given):
        following = iter(given)
        pairs = zip(values, needs, strict=True)
        output = function(op)(
            *(next(following) if need else value for value, need in pairs), **sample.kwargs
        )
        return sample.output_process_fn_grad(output)

    return called, [value for value, need in zip(values, needs, strict=True) if need]


def detached(sample):
    return [each.detach() if isinstance(each, torch.Tensor) else each for each in arguments(sample)]


def listed(result):
    return [result] if isinstance(result, torch.Tensor) else [*result]


def check_out(op, sample):
    given = detached(sample)
    due = op.op(*given, **sample.kwargs)
    out = [*map(torch.empty_like, listed(due))]
    op.op(*given, **sample.kwargs, out=out[0] if isinstance(due, torch.Tensor) else tuple(out))
    assert_close(out, listed(due))


def check_vmap(op, sample):
    given = detached(sample)
    axes = tuple(0 if isinstance(each, torch.Tensor) else None for each in given)
    pairs = zip(given, axes, strict=True)
    twice = [each if axis is None else torch.stack([each, each]) for each, axis in pairs]
    due = [torch.stack([each, each]) for each in listed(op.op(*given, **sample.kwargs))]
    found = torch.vmap(lambda *each: op.op(*each, **sample.kwargs), axes)(*twice)
    assert_close(listed(found), due)


def check_forward_mode(op, sample):
    called, inputs = of_inputs(op, sample)
    gradcheck(
        called,
        inputs,
        fast_mode=True,
        check_backward_ad=False,
        check_forward_ad=True,
        check_batched_forward_grad=op.check_batched_forward_grad,
    )


def check_batched_gradients(op, sample):
    called, inputs = of_inputs(op, sample)
    gradcheck(called, inputs, fast_mode=True, check_batched_grad=True)
    gradgradcheck(called, inputs, fast_mode=True, check_batched_grad=True)


def check_forward_over_reverse(op, sample):
    called, inputs = of_inputs(op, sample)
    gradgradcheck(
        called,
        inputs,
        fast_mode=True,
        check_fwd_over_rev=True,
        check_rev_over_rev=False,
        check_undefined_grad=False,
    )


def check_modes(op, sample):
    composite_compliance.check_with_mode(op, arguments(sample), sample.kwargs, assert_close)


def check_subclasses(op, sample):
    composite_compliance.check_all_permutations(op, arguments(sample), sample.kwargs, assert_close)


def check_backward_of_subclasses(op, sample):
    composite_compliance.check_backward_formula(
        op.op,
        arguments(sample),
        sample.kwargs,
        sample.output_process_fn_grad,
        op.gradcheck_wrapper,
        assert_close,
    )


def check_forward_mode_of_subclasses(op, sample):
    composite_compliance.check_forward_ad_formula(
        op.op, arguments(sample), sample.kwargs, op.gradcheck_wrapper, assert_close
    )


def check_fake_tensors(op, sample):
    optests.fake_check(op.op, detached(sample), sample.kwargs)


def check_traced_graph(op, sample):
    optests.make_fx_check(
        op.op, detached(sample), sample.kwargs, "fake", assert_close, randomize_data=False
    )


def check_compiled_gradients(op, sample):
    called, inputs = of_inputs(op, sample)
    optests.aot_autograd_check(called, inputs, {}, dynamic=False)


CHECKS = [value for name, value in [*globals().items()] if name.startswith("check_")]


def error_of(check, op, sample):
    """None where the check passes."""
    torch.manual_seed(0)
    try:
        check(op, sample)
    except Exception as error:  # noqa: BLE001 - whatever says that it does not pass
        return error
    return None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("op", DERIVED, ids=lambda op: op.formatted_name)
def test_checks_pass_that_pass_without(op, check, dtype):
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


@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize(
    "op", [op for op in OPS if op.error_inputs_func], ids=lambda op: op.formatted_name
)
def test_errors_are_those_that_pytorch_promises(op, is_installed):
    with strategies.install() if is_installed else contextlib.nullcontext():
        for each in op.error_inputs("cpu"):
            sample = each.sample_input
            with pytest.raises(each.error_type, match=each.error_regex):
                op.op(sample.input, *sample.args, **sample.kwargs)
