"""Compositional Koopman operators.

Compositional Koopman operators: the transition of a batch of systems is fitted by ridge regression
to the embeddings of their states, with `inverse` of XᵀX + λI, and the embedding is trained through
the fit by the error of the predictions.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

STATES, PENALTY = 6, 1e-1


@model_of(
    "YunzhuLi/CompositionalKoopmanOperators; Li et al., arXiv 1910.08264",
    small={"batch": 8, "times": 80, "dimensions": 32},
    full={"batch": 8, "times": 200, "dimensions": 128},
    same=1e-3,
)
def program(*, batch: int, times: int, dimensions: int) -> Step:
    x = torch.randn(batch, STATES)
    states = [x]
    for _ in range(times):
        x = x + 0.1 * torch.sin(x.roll(1, 1)) - 0.05 * x
        states.append(x)
    observed = torch.stack(states, 1)
    encoder = nn.Sequential(nn.Linear(STATES, 64), nn.ReLU(), nn.Linear(64, dimensions))
    decoder = nn.Linear(dimensions, STATES)
    eye = torch.eye(dimensions)
    half = times // 2

    def objective() -> Tensor:
        z = encoder(observed)
        X, Y = z[:, :half], z[:, 1 : half + 1]
        A = torch.inverse(X.mT @ X + PENALTY * eye) @ (X.mT @ Y)
        predicted = decoder(z[:, half:-1] @ A)
        reconstructed = decoder(z)
        errors = (predicted - observed[:, half + 1 :], reconstructed - observed)
        return errors[0].square().mean() + errors[1].square().mean()

    parameters = [*encoder.parameters(), *decoder.parameters()]
    return training(objective, torch.optim.Adam(parameters, lr=1e-3))
