"""Marginal likelihood of a Gaussian process.

The marginal likelihood of a Gaussian process, as GPyTorch computes it for up to 800 points:
`cholesky` of the kernel matrix, two triangular solves with the observations, the log determinant
from the diagonal. Its hyperparameters, a length scale for each input, are trained.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training

DIMENSIONS = 4


def draw(*, points: int) -> tuple[Tensor, ...]:
    """Points and observations, the logarithms of length scales and of the noise."""
    X = torch.rand(points, DIMENSIONS, dtype=torch.float64)
    y = torch.sin(6 * X[:, :1]) + X[:, 1:2] + 0.1 * torch.randn(points, 1, dtype=torch.float64)
    log_scales = torch.zeros(DIMENSIONS, dtype=torch.float64)
    return X, y, log_scales, torch.tensor(-2.0, dtype=torch.float64)


def by_cholesky(K: Tensor, y: Tensor) -> Tensor:
    """YᵀK⁻¹y + log det K."""
    L = torch.linalg.cholesky(K)
    whitened = torch.linalg.solve_triangular(L, y, upper=False)
    return whitened.square().sum() + 2 * L.diagonal().log().sum()


@model_of(
    "cornellius-gp/gpytorch and linear_operator, up to max_cholesky_size = 800",
    small={"points": 300},
    full={"points": 800},
)
def program(*, points: int, algebra: Callable[..., Tensor] = by_cholesky) -> Step:
    X, y, *parameters = draw(points=points)
    log_scales, log_noise = (each.requires_grad_() for each in parameters)
    eye = torch.eye(points, dtype=torch.float64)

    def objective() -> Tensor:
        scaled = X / log_scales.exp()
        squares = scaled.square().sum(1, keepdim=True)
        distances = squares + squares.mT - 2 * scaled @ scaled.mT
        K = (-0.5 * distances).exp() + log_noise.exp() * eye
        return 0.5 * (algebra(K, y) + points * math.log(2 * math.pi)) / points

    return training(objective, torch.optim.Adam([log_scales, log_noise], lr=0.05))
