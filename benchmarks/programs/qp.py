"""Quadratic programs as a layer.

A layer that solves quadratic programs with bounds and an equation by ADMM: for a batch of them the
KKT matrix is factored once, by `lu_factor`, and every iteration is an `lu_solve` with one
right-hand side; the gradient goes back through all of them, for which lqp_py brings a backward of
its own and this program has PyTorch's. What predicts costs and risks is trained by the value of the
decisions.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

FEATURES, RHO, ITERATIONS = 10, 1.0, 10


Solver = Callable[[Tensor], Tensor]
"""From right-hand sides to solutions."""


def by_lu(matrices: Tensor) -> Solver:
    """What solves systems with these matrices."""
    LU, pivots = torch.linalg.lu_factor(matrices)
    return lambda right: torch.linalg.lu_solve(LU, pivots, right)


@model_of(
    "ipo-lab/lqp_py, SolveBoxQP with unroll (Butler & Kwon, arXiv 2112.07464), in sizes of locuslab/qpth",
    small={"batch": 16, "variables": 66},
    full={"batch": 128, "variables": 119},
)
def program(*, batch: int, variables: int, algebra: Callable[[Tensor], Solver] = by_lu) -> Step:
    double = torch.float64
    factors = torch.randn(batch, variables, variables, dtype=double) / variables**0.5
    Q = factors @ factors.mT + 0.1 * torch.eye(variables, dtype=double)
    x = torch.randn(batch, FEATURES, dtype=double)
    cost = torch.tanh(x @ torch.randn(FEATURES, variables, dtype=double))
    cost = cost + 0.1 * torch.randn_like(cost)
    ones = torch.ones(batch, 1, variables, dtype=double)
    shift = RHO * torch.eye(variables, dtype=double)
    corner = torch.zeros(batch, 1, 1, dtype=double)
    network = nn.Linear(FEATURES, variables, dtype=double)
    scale = nn.Parameter(torch.zeros(variables, dtype=double))

    def decide(Q: Tensor, cost: Tensor) -> Tensor:
        upper, lower = torch.cat((Q + shift, ones.mT), 2), torch.cat((ones, corner), 2)
        solved = algebra(torch.cat((upper, lower), 1))
        z = torch.full_like(cost, 1 / variables)
        u = torch.zeros_like(z)
        for _ in range(ITERATIONS):
            right = torch.cat((RHO * (z - u) - cost, torch.ones_like(cost[:, :1])), 1)
            x = solved(right.unsqueeze(-1))[:, :variables, 0]
            z = (x + u).clamp(0, 1)
            u = u + x - z
        return z

    def objective() -> Tensor:
        risk = scale.exp().unsqueeze(-1) * Q * scale.exp()
        z = decide(risk, network(x)).unsqueeze(-1)
        return (0.5 * z.mT @ Q @ z + cost.unsqueeze(1) @ z).mean()

    return training(objective, torch.optim.Adam([*network.parameters(), scale], lr=1e-2))
