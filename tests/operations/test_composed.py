"""Functions made of other operations, beside PyTorch's."""

import functools

import pytest
import torch
from comparison import drawn, require_alike
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

SQUARE = drawn(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
CALLS = {
    "logdet": (torch.logdet, (SQUARE,)),
    "logdet of complex": (torch.logdet, (SQUARE * (1 + 0.5j),)),
    "matrix_power": (torch.linalg.matrix_power, (SQUARE, -3)),
    "matrix_power above zero": (torch.linalg.matrix_power, (SQUARE, 2)),
    "tensorinv": (torch.linalg.tensorinv, (drawn(2, 4, 4, 2), 2)),
    "tensorinv of a matrix": (torch.linalg.tensorinv, (drawn(4, 4), 1)),
    "tensorsolve": (torch.linalg.tensorsolve, (drawn(2, 3, 6), drawn(2, 3))),
    "tensorsolve, dims": (
        torch.linalg.tensorsolve,
        (drawn(3, 2, 2, 3, 1), drawn(2, 3, 1), (0, 2)),
    ),
}


def ours(of_torch):
    return getattr(linalg, of_torch.__name__.removeprefix("linalg_"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
def test_values_and_gradients_are_those_of_torch(call, strategy):
    of_torch, arguments = CALLS[call]
    leaves = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in arguments]
    require_alike(functools.partial(ours(of_torch), strategy=strategy), of_torch, *leaves)


@pytest.mark.parametrize("call", CALLS)
def test_derivatives_are_right_in_all_modes(call):
    of_torch, arguments = CALLS[call]
    tensors = [a.clone().requires_grad_() for a in arguments if isinstance(a, torch.Tensor)]
    others = [a for a in arguments if not isinstance(a, torch.Tensor)]

    def function(*tensors):
        return ours(of_torch)(*tensors, *others)

    assert gradcheck(function, tensors, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, tensors)


def test_logarithms_of_negative_and_zero_determinants():
    A = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    assert linalg.logdet(A).isnan().tolist() == [True, False]
    assert linalg.logdet(A)[1] == -torch.inf
