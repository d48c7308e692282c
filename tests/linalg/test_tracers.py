"""Tracers: what they record computes the operation, at other inputs too."""

import functools

import pytest
import torch
from comparison import require_alike
from fuzz.derivative import over_numbers
from operations import complex_first, function, inputs_of, mode
from torch.fx.experimental.proxy_tensor import make_fx

import strategies
from strategies import linalg

in_mode = functools.partial(mode, usual=["triangular_solve", "fused"], dtypes=complex_first)


def numbers_of(operation, strategy):
    """A real result for each entry of the differentiable outputs, since torch.func takes no others."""
    call = function(operation, strategy)
    return lambda *inputs: torch.cat([each.abs().square().flatten() for each in call(*inputs)])


def at_two_points(operation, dtype):
    return [
        [value.detach() for value in inputs_of(operation, (3, 3), (), dtype, seed)]
        for seed in (0, 1)
    ]


def gradient_of(call):
    """Of a loss that is not linear in the result."""

    def loss(*inputs):
        return call(*inputs).square().sum()

    def gradient(*inputs):
        gradients = torch.func.grad(loss, (*range(len(inputs)),))(*inputs)
        return torch.cat([each.abs().flatten() for each in gradients])

    return gradient


@in_mode("jit.trace")
def test_torch_jit_trace_records_the_operation(operation, strategy, dtype):
    call = numbers_of(operation, strategy)
    first, second = at_two_points(operation, dtype)
    traced = torch.jit.trace(call, first, check_trace=False)
    require_alike(traced, call, *(value.requires_grad_() for value in second))


@in_mode("make_fx")
# Symbolic tracing goes by fake tensors, too.
@pytest.mark.parametrize(
    "tracing_mode", ["real", pytest.param("fake", marks=pytest.mark.slow), "symbolic"]
)
def test_make_fx_records_the_operation(operation, strategy, dtype, tracing_mode):
    call = numbers_of(operation, strategy)
    first, second = at_two_points(operation, dtype)
    traced = make_fx(call, tracing_mode=tracing_mode)(*first)
    torch.testing.assert_close(traced(*second), call(*second))


@in_mode("make_fx")
def test_make_fx_records_the_gradient(operation, strategy, dtype):
    gradient = gradient_of(numbers_of(operation, strategy))
    first, second = at_two_points(operation, dtype)
    torch.testing.assert_close(make_fx(gradient)(*first)(*second), gradient(*second))


@in_mode("linearize")
def test_linearize_gives_the_tangent_map_which_has_a_transpose(operation, strategy, dtype):
    call, x = over_numbers(numbers_of(operation, strategy), at_two_points(operation, dtype)[0])
    result, tangents = torch.func.linearize(call, x)
    direction, cotangent = torch.randn_like(x).requires_grad_(), torch.randn_like(result)
    found = tangents(direction)
    torch.testing.assert_close(found, torch.func.jvp(call, (x,), (direction,))[1])
    (transposed,) = torch.autograd.grad(found, direction, cotangent)
    torch.testing.assert_close(transposed, torch.func.vjp(call, x)[1](cotangent)[0])


@pytest.mark.parametrize("function", [linalg.solve, lambda L, B: linalg.cholesky_solve(B, L)])
def test_one_right_hand_side_is_a_constant_of_a_linearized_function(function):
    L, B = torch.tensor([[2.0, 0.0], [1.0, 3.0]]), torch.ones(2, 1)
    tangents = torch.func.linearize(lambda L: function(L, B), L)[1](L)
    torch.testing.assert_close(tangents, torch.func.jvp(lambda L: function(L, B), (L,), (L,))[1])


@in_mode("functionalize")
def test_functionalize_is_of_no_effect(operation, strategy, dtype):
    call = numbers_of(operation, strategy)
    _, inputs = at_two_points(operation, dtype)
    torch.testing.assert_close(torch.func.functionalize(call)(*inputs), call(*inputs))
    gradient = gradient_of(call)
    torch.testing.assert_close(torch.func.functionalize(gradient)(*inputs), gradient(*inputs))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky"])
def test_a_replaced_function_is_traced_as_torchs_own(name):
    A, other = (torch.eye(3, dtype=torch.float64) * scale for scale in (2, 3))
    with strategies.replace_torch():
        function = getattr(torch.linalg, name)
        traced = torch.jit.trace(lambda A: function(2 * A), A)
    assert "backward_strategies" not in str(traced.graph)
    torch.testing.assert_close(traced(other), getattr(torch.linalg, name)(2 * other))
