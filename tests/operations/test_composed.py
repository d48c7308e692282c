"""Functions made of other operations, beside PyTorch's."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

GENERATOR = torch.Generator().manual_seed(0)


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=GENERATOR)


SQUARE = random(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
CALLS = {
    "logdet": (torch.logdet, (SQUARE,)),
    "logdet of complex": (torch.logdet, (SQUARE * (1 + 0.5j),)),
    "matrix_power": (torch.linalg.matrix_power, (SQUARE, -3)),
    "matrix_power above zero": (torch.linalg.matrix_power, (SQUARE, 2)),
    "tensorinv": (torch.linalg.tensorinv, (random(2, 4, 4, 2), 2)),
    "tensorinv of a matrix": (torch.linalg.tensorinv, (random(4, 4), 1)),
    "tensorsolve": (torch.linalg.tensorsolve, (random(2, 3, 6), random(2, 3))),
    "tensorsolve, dims": (
        torch.linalg.tensorsolve,
        (random(3, 2, 2, 3, 1), random(2, 3, 1), (0, 2)),
    ),
}


def ours(of_torch):
    return getattr(linalg, of_torch.__name__.removeprefix("linalg_"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
def test_values_and_gradients_are_those_of_torch(call, strategy):
    of_torch, arguments = CALLS[call]
    found = []
    for function, options in ((of_torch, {}), (ours(of_torch), {"strategy": strategy})):
        tensors = [a.clone().requires_grad_() for a in arguments if isinstance(a, torch.Tensor)]
        others = [a for a in arguments if not isinstance(a, torch.Tensor)]
        result = function(*tensors, *others, **options)
        found.append((result, *torch.autograd.grad(result.abs().square().sum(), tensors)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


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
