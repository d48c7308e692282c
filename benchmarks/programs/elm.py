"""Extreme learning machine.

The hidden layer of an extreme learning machine is trained through the pseudoinverse of what it puts
out for the training samples: `pinv` of a tall matrix, the loss on held-out samples. PyTorch's
backward of `pinv` makes two matrices of the number of samples squared.
"""

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training

FEATURES = 8


def draw(*, samples: int, hidden: int) -> tuple[Tensor, ...]:
    """Samples and what they are to give, weights and biases."""
    X = torch.rand(2 * samples, FEATURES, dtype=torch.float64) * 2 - 1
    Y = torch.stack((torch.sin(3 * X[:, 0]) * X[:, 1], X.square().sum(1)), 1)
    weights = torch.randn(FEATURES, hidden, dtype=torch.float64)
    return X, Y, weights, torch.randn(hidden, dtype=torch.float64)


@model_of(
    "Huang, Zhu & Siew, Extreme learning machine, Neurocomputing 70 (2006), "
    "with the hidden layer trained as by Golub & Pereyra (1973)",
    small={"samples": 1024, "hidden": 32},
    full={"samples": 8192, "hidden": 128},
)
def program(*, samples: int, hidden: int) -> Step:
    X, Y, *parameters = draw(samples=samples, hidden=hidden)
    weights, biases = (each.requires_grad_() for each in parameters)

    def objective() -> Tensor:
        H = torch.tanh(X @ weights + biases)
        readout = torch.linalg.pinv(H[:samples]) @ Y[:samples]
        return (H[samples:] @ readout - Y[samples:]).square().mean()

    return training(objective, torch.optim.Adam([weights, biases], lr=1e-2))
