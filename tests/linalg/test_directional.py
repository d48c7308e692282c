"""All compositions of forward and reverse mode, to third order, of a nonlinear loss."""

import functools

import pytest
import torch
from comparison import drawn
from fuzz.derivative import DIRECTIONS, derivative, numbers_of, over_numbers, words
from operations import each_operation, function, inputs_of, mode, pairs, reference
from torch.autograd import forward_ad

from strategies.operations import get

ALSO = {
    "r": "backward",
    "f": "forward",
    "rr": "backward of backward",
    "fr": "forward over backward",
}
"""The columns of docs/modes.md that linear losses fill, too."""

WORDS = [
    pytest.param(word, marks=pytest.mark.mode(*[word] * (len(word) > 1), *filter(None, [ALSO.get(word)])))
    for word in (*words(1), *words(2), *words(3))
]  # fmt: skip

USUAL = ["triangular_solve", "fused"]


def loss_of(operation, strategy, dtype):
    """A nonlinear loss of a vector of real numbers, and where to differentiate it.

    It is of PyTorch's own function if by no strategy. It has a constant of zero dimensions in it, which
    forward mode multiplies tangents by.
    """
    inputs = [value.detach() for value in inputs_of(operation, (3, 3), (), dtype)]
    call = reference(operation) if strategy is None else function(operation, strategy)
    weights = [
        drawn(*each.shape, dtype=each.dtype, seed=i + 1) for i, each in enumerate(call(*inputs))
    ]
    of_vector, x = over_numbers(call, inputs)
    constant = torch.tensor(0.7, dtype=torch.float64)

    def loss(numbers):
        total = torch.zeros((), dtype=torch.float64)
        for output, weight in zip(of_vector(numbers), weights, strict=True):
            linear = torch.real((output * weight).sum())
            # Not by the modulus, which has no derivatives at the zeros of a triangular output.
            total = total + constant * linear + constant * numbers_of(output).square().sum()
        return total + total * total * constant

    return loss, x


@functools.cache
def by_differences(name, dtype, order):
    """The same by central differences of gradients in reverse mode, of PyTorch's own function."""
    loss, x = loss_of(get(name), None, dtype)

    def gradient(y):
        leaf = y.clone().requires_grad_()
        return torch.autograd.grad(loss(leaf), leaf)[0] @ DIRECTIONS[order - 1][: len(y)]

    found = gradient
    for direction in DIRECTIONS[: order - 1]:
        found = _differences(found, direction[: len(x)])
    return found(x)


def _differences(values, direction, step=3e-3):
    """Of fourth order."""
    near, far = step * direction, 2 * step * direction
    return lambda y: (
        (8 * (values(y + near) - values(y - near)) - (values(y + far) - values(y - far)))
        / (12 * step)
    )


def require_equal(strategy, found, expected):
    """Of PyTorch's own derivatives those that are wrong are expected to be."""
    if strategy == "native" and not torch.allclose(found, expected, rtol=1e-4):
        pytest.xfail("PyTorch's own derivative is wrong (PyTorch issue 198017)")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize(
    ("dtype", "by_vmap"),
    [
        (torch.float64, False),
        (torch.complex128, True),
        pytest.param(torch.float64, True, marks=pytest.mark.slow),
        pytest.param(torch.complex128, False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("operation", "strategy"), pairs(USUAL, others=True))
def test_every_composition_is_the_derivative(operation, strategy, word, dtype, by_vmap):
    loss, x = loss_of(operation, strategy, dtype)
    try:
        found = derivative(loss, word, x, by_vmap=by_vmap)
    except RuntimeError as error:
        if strategy != "native":
            raise
        pytest.xfail(f"PyTorch: {str(error)[:60]}")
    require_equal(strategy, found, by_differences(operation.name, dtype, len(word)))


@pytest.mark.parametrize("word", words(3))
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.complex64, marks=pytest.mark.slow)], ids=str
)
@each_operation
def test_compositions_agree_in_single_precision(operation, dtype, word):
    loss, x = loss_of(operation, "fused", dtype)
    found, expected = (derivative(loss, each, x) for each in (word, "rrr"))
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=0, check_dtype=False)


@mode("rf", usual=USUAL)
def test_the_gradient_of_a_tangent_of_forward_ad(operation, strategy, dtype):
    loss, x = loss_of(operation, strategy, dtype)
    leaf = x.clone().requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(
            loss(forward_ad.make_dual(leaf, DIRECTIONS[1][: len(x)]))
        ).tangent
        (gradient,) = torch.autograd.grad(tangent, leaf)
    found = gradient @ DIRECTIONS[0][: len(x)]
    require_equal(strategy, found, by_differences(operation.name, dtype, 2))


@mode("fr", usual=USUAL)
def test_the_tangent_of_a_gradient_of_forward_ad(operation, strategy, dtype):
    loss, x = loss_of(operation, strategy, dtype)
    leaf = x.clone().requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(leaf, DIRECTIONS[0][: len(x)])
        (gradient,) = torch.autograd.grad(loss(dual), dual, create_graph=True)
        found = forward_ad.unpack_dual(gradient).tangent @ DIRECTIONS[1][: len(x)]
    require_equal(strategy, found.detach(), by_differences(operation.name, dtype, 2))


@pytest.mark.parametrize("word", ["f", "ff", "fr", "rf", "rr"])
@each_operation
def test_derivatives_are_mapped_over_points(operation, word):
    loss, x = loss_of(operation, "fused", torch.float64)
    points = torch.stack([x, x + 1e-2 * DIRECTIONS[2][: len(x)]])
    mapped = torch.func.vmap(lambda y: derivative(loss, word, y))(points)
    separate = [derivative(loss, word, y) for y in points]
    torch.testing.assert_close(mapped, torch.stack(separate))
