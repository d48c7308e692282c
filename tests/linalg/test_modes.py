"""Transforms and modes of PyTorch: vmap, torch.func, compile, checkpoint, hooks, inference."""

import functools

import pytest
import torch
from arguments import ARGUMENTS, ours_and_torchs
from comparison import require_alike
from fuzz.derivative import numbers_of, over_numbers
from operations import (
    each_dtype,
    each_operation,
    expect_known_failure,
    function,
    inputs_of,
    mode,
    needs_compiler,
    pairs,
)
from torch.autograd import gradcheck
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import strategies
from strategies import linalg
from strategies.testing.global_state import preserved

# One of full rank and one of any: modes are the glue's, and the same for all strategies.
USUAL = ["triangular_solve", "svd_truncated_pinv"]
in_mode = functools.partial(mode, usual=USUAL)


def _setup(operation, strategy, dtype, batch=()):
    inputs = tuple(value.detach() for value in inputs_of(operation, (3, 3), batch, dtype))
    call = function(operation, strategy)
    return (lambda *values: call(*values)[0]), inputs


def _loss(function):
    return lambda *inputs: function(*inputs).abs().square().sum()


@in_mode("vmap")
def test_vmap_equals_the_batched_call_and_gives_gradients_of_samples(operation, strategy, dtype):
    call, inputs = _setup(operation, strategy, dtype, (4,))
    for batched in (call, torch.func.grad(_loss(call))):
        torch.testing.assert_close(torch.func.vmap(batched)(*inputs), batched(*inputs))


@in_mode("vmap")
def test_vmap_of_another_dimension_and_of_some_inputs_only(operation, strategy, dtype):
    call, inputs = _setup(operation, strategy, dtype, (4,))
    moved = inputs[0].movedim(0, -1)
    rest = [value[0] for value in inputs[1:]]
    mapped = torch.func.vmap(call, in_dims=(-1, *[None] * len(rest)))(moved, *rest)
    expanded = [value.expand(4, *value.shape) for value in rest]
    torch.testing.assert_close(mapped, call(inputs[0], *expanded))


@pytest.mark.parametrize("strategy", strategies.available())
def test_lstsq_decides_on_residuals_under_vmap_where_no_value_can_be_asked_for(strategy):
    A, b = torch.randn(3, 7, 4, dtype=torch.float64), torch.randn(7, 1, dtype=torch.float64)
    gradient = torch.func.grad(lambda A: linalg.lstsq(A, b, strategy=strategy).solution.sum())
    one_by_one = torch.stack([gradient(one) for one in A])
    torch.testing.assert_close(torch.func.vmap(gradient)(A), one_by_one)


def test_lu_factor_refuses_zero_pivots_under_vmap():
    factor = torch.func.vmap(lambda A: linalg.lu_factor(A, strategy="triangular_solve").LU)
    good = torch.randn(3, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(factor(good), torch.linalg.lu_factor(good).LU)
    with pytest.raises(torch.linalg.LinAlgError, match=r"U\[1,1\] is zero"):
        factor(torch.zeros(3, 4, 4))


@each_dtype
@each_operation
def test_mapped_gradients_and_gradients_of_mapped_cotangents_by_auto(operation, dtype):
    """One level of reverse mode, which goes by operators."""
    by_auto, inputs = _setup(operation, "auto", dtype, (2,))
    by_name, _ = _setup(operation, "triangular_solve", dtype, (2,))
    one = [each[0] for each in inputs]
    cotangents = torch.randn(5, *by_name(*one).shape, dtype=by_name(*one).dtype)

    def of_mapped_cotangents(call):
        return torch.func.vmap(torch.func.vjp(call, *one)[1])(cotangents)

    def mapped(call):
        return torch.func.vmap(torch.func.grad(_loss(call)))(*inputs)

    for derivative in (of_mapped_cotangents, mapped):
        for _ in range(2):  # a second call finds what the first has planned
            torch.testing.assert_close(derivative(by_auto), derivative(by_name))


@each_dtype
@each_operation
@pytest.mark.parametrize("strategy", ["auto", "blocked_lu"])
def test_mapped_cotangents_of_a_result_that_was_not_mapped(operation, strategy, dtype):
    """As `is_grads_batched` has it."""
    call, (A, *rest) = _setup(operation, strategy, dtype)
    result = call(A.requires_grad_(), *rest)
    cotangents = torch.randn(3, *result.shape, dtype=result.dtype)

    def gradient(cotangent):
        return torch.autograd.grad(result, A, cotangent, retain_graph=True)[0]

    expected = torch.stack([*map(gradient, cotangents)])
    torch.testing.assert_close(torch.func.vmap(gradient)(cotangents), expected)


@pytest.mark.parametrize("strategy", ["auto", "triangular_solve"])
@each_operation
def test_a_pullback_has_derivatives_by_autograd_after_its_transform(operation, strategy):
    call, inputs = _setup(operation, strategy, torch.float64)
    cotangent = torch.randn_like(call(*inputs))

    def pulled_back(*given):
        return torch.func.vjp(call, *given[:-1])[1](given[-1])

    given = [each.requires_grad_() for each in (*inputs, cotangent)]
    assert gradcheck(pulled_back, given, fast_mode=True)


@in_mode("torch.func")
def test_jacobians_in_reverse_and_forward_mode_agree(operation, strategy, dtype, request):
    expect_known_failure(request, operation, strategy)
    call, x = over_numbers(*_setup(operation, strategy, dtype))
    reverse, forward = (
        jacobian(lambda x: numbers_of(call(x)))(x)
        for jacobian in (torch.func.jacrev, torch.func.jacfwd)
    )
    torch.testing.assert_close(reverse, forward)


@in_mode("torch.func")
def test_hessian_is_that_of_reverse_over_reverse(operation, strategy, dtype, request):
    expect_known_failure(request, operation, strategy)
    if (operation.name, strategy, dtype) == ("det", "native", torch.complex128):
        reason = "PyTorch has no vmap of the second derivative of a complex det"
        request.applymarker(pytest.mark.xfail(reason=reason))
    call, inputs = _setup(operation, strategy, dtype)
    loss, x = over_numbers(_loss(call), inputs)
    expected = torch.func.jacrev(torch.func.grad(loss))(x)
    torch.testing.assert_close(torch.func.hessian(loss)(x), expected)


@in_mode("torch.func")
def test_vjp_and_jvp_satisfy_the_adjoint_identity(operation, strategy, dtype, request):
    expect_known_failure(request, operation, strategy)
    call, inputs = _setup(operation, strategy, dtype, (2,))
    directions = tuple(torch.randn_like(value) for value in inputs)
    output, tangent = torch.func.jvp(call, inputs, directions)
    cotangent = torch.randn_like(output)
    gradients = torch.func.vjp(call, *inputs)[1](cotangent)
    pairings = [(a.conj() * b).sum().real for a, b in zip(gradients, directions, strict=True)]
    torch.testing.assert_close((cotangent.conj() * tangent).sum().real, sum(pairings))


COMPILED = [
    pytest.param(*pair.values, backend, id=f"{pair.id}-{backend}", marks=[*pair.marks, *marks])
    for backend, marks, those in (
        ("aot_eager", [], pairs(["triangular_solve"])),
        ("inductor", [pytest.mark.slow, needs_compiler], pairs(USUAL, others=True)),
    )
    for pair in those
]


@pytest.mark.mode("compile")
@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float64, marks=pytest.mark.slow), torch.complex128], ids=str
)
@pytest.mark.parametrize(("operation", "strategy", "backend"), COMPILED)
def test_compiled_gradients_are_the_eager_ones(operation, strategy, dtype, backend):
    call, inputs = _setup(operation, strategy, dtype)
    torch.compiler.reset()

    def loss(*values):
        return _loss(call)(*(2 * value for value in values))

    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    leaves = (value.requires_grad_() for value in inputs)
    require_alike(compiled, loss, *leaves, rtol=1e-13, atol=1e-13)


@in_mode("checkpoint")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointing_gives_the_same_gradients(operation, strategy, use_reentrant, dtype):
    call, inputs = _setup(operation, strategy, dtype)
    leaves = [value.requires_grad_() for value in inputs]
    expected = torch.autograd.grad(_loss(call)(*leaves), leaves)
    checkpoint(call, *leaves, use_reentrant=use_reentrant).abs().square().sum().backward()
    torch.testing.assert_close(tuple(leaf.grad for leaf in leaves), expected)


@in_mode("saved-tensor hooks")
def test_every_tensor_that_is_kept_for_the_backward_passes_the_saved_tensor_hooks(
    operation, strategy, dtype
):
    call, inputs = _setup(operation, strategy, dtype)
    packed = []

    def pack(tensor):
        packed.append(tensor.detach().clone())
        return len(packed) - 1

    def under_hooks(*values):
        with torch.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
            return call(*values)

    require_alike(under_hooks, call, *(value.requires_grad_() for value in inputs))


@in_mode("views")
def test_non_contiguous_and_expanded_inputs(operation, strategy, dtype):
    call, inputs = _setup(operation, strategy, dtype)
    views = [value.mT.contiguous().mT.expand(2, *value.shape) for value in inputs]
    gradient = torch.func.grad(_loss(call))
    torch.testing.assert_close(gradient(*views), gradient(*(view.contiguous() for view in views)))


@in_mode("inference")
def test_inference_mode_and_inputs_that_require_no_gradient(operation, strategy, dtype):
    call, inputs = _setup(operation, strategy, dtype)
    with torch.inference_mode():
        value = call(*inputs)
    assert not call(*inputs).requires_grad
    torch.testing.assert_close(value, call(*inputs))


@pytest.mark.parametrize("strategy", ["triangular_solve", "qr_pinv", "svd_truncated_pinv"])
def test_numpy_takes_what_inference_mode_returns(strategy):
    A = torch.randn(2, 3, dtype=torch.complex128)
    with torch.inference_mode():
        value = linalg.pinv(A, strategy=strategy)
    assert not value.is_conj()
    assert value.numpy().shape == (3, 2)


@pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
@pytest.mark.parametrize("wanted", [0, -1])
@pytest.mark.parametrize("name", ["cholesky_solve", "lstsq", "solve"])
def test_the_gradient_of_one_input_only(name, wanted, strategy):
    inputs = [*ARGUMENTS[name]]
    inputs[wanted] = inputs[wanted].clone().requires_grad_()
    calls = (
        lambda *given, call=call: tree_leaves(call(*given))[0]
        for call in ours_and_torchs(name, strategy=strategy)
    )
    require_alike(*calls, *inputs)


@pytest.mark.parametrize("factor", [1, 2])
def test_lu_gradient_of_one_factor_only(factor):
    A = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    require_alike(
        lambda A: linalg.lu(A, strategy="blocked_lu")[factor],
        lambda A: torch.linalg.lu(A)[factor],
        A,
    )


@pytest.mark.parametrize("precision", ["high", "medium"])
@pytest.mark.parametrize(("operation", "strategy"), pairs())
def test_reduced_float32_products_do_not_enter_a_gradient(operation, strategy, precision):
    inputs = [value.detach().float().requires_grad_() for value in inputs_of(operation, (64, 64))]
    call = _loss(lambda *values: function(operation, strategy)(*values)[0] / 64)
    expected = torch.autograd.grad(call(*inputs), inputs)
    with preserved():
        torch.set_float32_matmul_precision(precision)
        gradients = torch.autograd.grad(call(*inputs), inputs)
        assert torch.get_float32_matmul_precision() == precision
    assert all(map(torch.equal, gradients, expected))
