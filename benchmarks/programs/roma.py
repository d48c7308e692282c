"""Gaussian-process decoder of a matcher.

The decoder of RoMa, which matches two images: the coordinates in one are regressed on features of
the other by a Gaussian process, with `inv` of the kernel matrix of all of its patches and the
noise, in single precision, and products with it. Features and decoder, here a projection and a
linear layer, are trained by the error of the coordinates.
"""

import math

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

TEMPERATURE, NOISE = 0.2, 0.1


@model_of(
    "Parskatt/RoMa, GP; Edstedt et al., arXiv 2305.15404",
    small={"batch": 2, "side": 16, "features": 64, "dimensions": 128},
    full={"batch": 8, "side": 40, "features": 512, "dimensions": 512},
    same=1e-3,
)
def program(*, batch: int, side: int, features: int, dimensions: int) -> Step:
    patches = side * side
    reference = torch.randn(batch, patches, features)
    order = torch.stack([torch.randperm(patches) for _ in range(batch)])
    moved = reference.gather(1, order[..., None].expand_as(reference))
    moved = moved + 0.5 * torch.randn_like(moved)
    line = torch.linspace(-1 + 1 / side, 1 - 1 / side, side)
    coordinates = torch.cartesian_prod(line, line)
    truth = coordinates[order]
    basis = torch.cos(8 * math.pi * nn.Linear(2, dimensions)(coordinates)).detach()
    project, decode = nn.Linear(features, features), nn.Linear(dimensions, 2)

    def objective() -> Tensor:
        x, y = project(moved), project(reference)
        noise = NOISE * torch.eye(patches)
        inverse = torch.linalg.inv(_kernel(y, y) + noise)
        mean = _kernel(x, y) @ (inverse @ basis)
        return (decode(mean) - truth).square().sum(-1).mean()

    parameters = [*project.parameters(), *decode.parameters()]
    return training(objective, torch.optim.AdamW(parameters, lr=1e-3))


def _kernel(x: Tensor, y: Tensor) -> Tensor:
    norms = x.norm(dim=-1)[..., None] * y.norm(dim=-1)[:, None]
    return (((x @ y.mT) / (norms + 1e-6) - 1) / TEMPERATURE).exp()
