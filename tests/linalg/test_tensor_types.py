"""Tensors of other types, and zeros that have no memory, in every place of every operation."""

import pytest
import torch
from fuzz.outcome import Own
from operations import each_dtype, each_operation, function, inputs_of
from torch.autograd import forward_ad
from torch.testing._internal.two_tensor import TwoTensor

import strategies
from strategies import linalg

each_strategy = pytest.mark.parametrize("strategy", ["auto", *strategies.available()])


class Recording(torch.Tensor):
    """A subclass that notes which functions it is given."""

    seen: list[object] = []  # noqa: RUF012 - of the class

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def zeros_like(tensor):
    return torch._efficientzerotensor(tensor.shape, dtype=tensor.dtype)


@each_operation
@each_strategy
@pytest.mark.parametrize("n", [3, 40])
@each_dtype
def test_cotangents_that_are_zeros_without_memory(operation, strategy, n, dtype):
    inputs = inputs_of(operation, (n, n), (), dtype)
    outputs = function(operation, strategy)(*inputs)
    gradients = torch.autograd.grad(outputs, inputs, [zeros_like(each) for each in outputs])
    assert not any(bool(each.any()) for each in gradients)


@each_operation
@each_strategy
def test_tangents_that_are_zeros_without_memory(operation, strategy):
    inputs = [each.detach() for each in inputs_of(operation, (3, 3))]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(each, zeros_like(each)) for each in inputs]
        for output in function(operation, strategy)(*duals):
            tangent = forward_ad.unpack_dual(output).tangent
            assert tangent is None or not bool((tangent != 0).any())


@each_strategy
@pytest.mark.parametrize("n", [3, 40])
def test_inputs_that_are_zeros_without_memory(strategy, n):
    zeros = torch._efficientzerotensor(n, n, dtype=torch.float64)
    assert linalg.det(zeros, strategy=strategy) == 0
    A = torch.eye(n, dtype=torch.float64)
    assert not linalg.solve(A, zeros, strategy=strategy).any()
    with pytest.raises(torch.linalg.LinAlgError):
        linalg.inv(zeros, strategy=strategy)


@each_operation
def test_a_subclass_without_storage_gets_what_its_parts_get(operation):
    call = function(operation, "auto")
    inputs = [each.detach() for each in inputs_of(operation, (3, 3))]
    other = [each.detach() for each in inputs_of(operation, (3, 3), seed=1)]
    leaves = [TwoTensor(*pair).requires_grad_() for pair in zip(inputs, other, strict=True)]
    outputs = call(*leaves)
    gradients = torch.autograd.grad(sum(each.abs().sum() for each in outputs), leaves)
    for part, tensors in (("a", inputs), ("b", other)):
        given = [each.requires_grad_() for each in tensors]
        due = call(*given)
        due_gradients = torch.autograd.grad(sum(each.abs().sum() for each in due), given)
        for found, expected in zip((*outputs, *gradients), (*due, *due_gradients), strict=True):
            torch.testing.assert_close(getattr(found, part), expected)


@each_operation
@each_strategy
def test_a_subclass_keeps_its_type(operation, strategy):
    inputs = [each.detach() for each in inputs_of(operation, (3, 3))]
    found = function(operation, strategy)(*(each.as_subclass(Own) for each in inputs))
    expected = function(operation, strategy)(*inputs)
    for one, other in zip(found, expected, strict=True):
        assert type(one) is Own
        torch.testing.assert_close(one.as_subclass(torch.Tensor), other)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", ["solve", "lstsq"])
def test_a_subclass_is_given_the_public_function(name, by_name):
    A, B = torch.eye(3).as_subclass(Recording), torch.ones(3, 1)
    Recording.seen.clear()
    function = getattr(linalg, name)
    result = function(A=A, B=B) if by_name else function(A, B)
    assert function in Recording.seen
    assert all("data_ptr" not in str(each) for each in Recording.seen)
    assert type(result if name == "solve" else result.solution) is Recording


@pytest.mark.parametrize("by_name", [False, True])
def test_a_replaced_function_leaves_subclasses_to_torch(by_name):
    A, B = torch.eye(3, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    pair = TwoTensor(A, 2 * A)
    with strategies.replace_torch():
        found = torch.linalg.solve(A=pair, B=B) if by_name else torch.linalg.solve(pair, B)
        own = torch.linalg.solve(A=A.as_subclass(Own), B=B)
    torch.testing.assert_close((found.a, found.b), (B, B / 2))
    assert type(own) is Own


@pytest.mark.parametrize("name", ["atol", "rtol"])
@pytest.mark.parametrize("strategy", ["auto", "qr_pinv", "native"])
def test_a_tolerance_has_no_gradient(name, strategy):
    A = torch.eye(3, requires_grad=True)
    tolerance = torch.tensor(1e-3, requires_grad=True)
    for pinv in (torch.linalg.pinv, lambda *a, **o: linalg.pinv(*a, **o, strategy=strategy)):
        with pytest.raises(RuntimeError, match=f"not differentiable with respect to .*'{name}'"):
            pinv(A, **{name: tolerance})
        with torch.no_grad():
            assert pinv(A, **{name: tolerance}).shape == (3, 3)
