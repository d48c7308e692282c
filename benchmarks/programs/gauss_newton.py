"""Gauss-Newton by normal equations.

Theseus' batched least squares: Gauss-Newton steps on the normal equations of 128 problems of 8
variables in single precision, by `cholesky` and `cholesky_solve` with one right-hand side, and a
network that weights the measurements, trained through all of the steps.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

ITERATIONS = 5


def by_cholesky(A: Tensor, b: Tensor) -> Tensor:
    """A⁻¹b, A positive definite."""
    return torch.cholesky_solve(b, torch.linalg.cholesky(A))


@model_of(
    "facebookresearch/theseus, CholeskyDenseSolver; Pineda et al., arXiv 2207.09442",
    small={"batch": 128, "variables": 8, "measurements": 24},
    full={"batch": 2048, "variables": 8, "measurements": 24},
    same=1e-3,
)
def program(
    *, batch: int, variables: int, measurements: int, algebra: Callable[..., Tensor] = by_cholesky
) -> Step:
    truth = torch.rand(batch, variables, 1)
    sensors = 0.5 * torch.randn(batch, measurements, variables)
    readings = torch.sin(sensors @ truth)
    is_wrong = torch.rand(batch, measurements, 1) < 0.2
    readings = readings + is_wrong * torch.randn(batch, measurements, 1)
    seen = torch.cat((readings, is_wrong + 0.3 * torch.randn(batch, measurements, 1)), -1)
    network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Softplus())
    damping = 1e-2 * torch.eye(variables)

    def objective() -> Tensor:
        weights = network(seen)
        x = torch.full_like(truth, 0.5)
        for _ in range(ITERATIONS):
            phase = sensors @ x
            residuals = weights * (readings - torch.sin(phase))
            J = weights * torch.cos(phase) * sensors
            x = x + algebra(J.mT @ J + damping, J.mT @ residuals)
        return (x - truth).square().mean()

    return training(objective, torch.optim.Adam(network.parameters(), lr=1e-2))
