"""Elasticity, from a flattened body.

A block of tetrahedra, pressed flat at the start, is to find its shape again: 100 steps of Adam on
the stable Neo-Hookean energy of all of its elements, of which each takes `det` of its 3×3
deformation gradient. To recover from a plane is what this energy was made for, and how its authors
test it. At the start every determinant is zero, and its gradient, the adjugate, is not: it is the
only force out of the plane. PyTorch's gradient of a singular determinant is zero, so there the
block stays flat, at whatever energy the plane allows.
"""

import itertools
import math

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training

MU, LAMBDA = 1.0, 10.0
ALPHA = 1 + 3 * MU / (4 * LAMBDA)
AT_REST = -MU / 2 * math.log(4) + LAMBDA / 2 * (1 - ALPHA) ** 2
"""The density of the energy of an undeformed element, from which the loss counts."""

CORNERS = tuple(itertools.permutations(range(3)))
"""Six tetrahedra fill a cube: along its axes in every order, from one corner to the opposite one."""


@model_of(
    "Smith, de Goes & Kim, Stable Neo-Hookean Flesh Simulation, ACM Trans. Graph. 37 (2018)",
    small={"cells": 12},
    full={"cells": 32},
    differs="PyTorch's gradient of a singular determinant is zero; it is the adjugate",
)
def program(*, cells: int) -> Step:
    corner = torch.cartesian_prod(*[torch.arange(cells + 1)] * 3)
    rest = corner.to(torch.float64) / cells
    elements = _tetrahedra(cells)
    inverse_rest = _edges(rest, elements).inverse()
    volumes = _edges(rest, elements).det().abs() / 6
    positions = rest * torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    positions.requires_grad_()

    def objective() -> Tensor:
        F = _edges(positions, elements) @ inverse_rest
        J, stretch = torch.linalg.det(F), F.square().sum((-2, -1))
        shear = MU / 2 * (stretch - 3 - (stretch + 1).log())
        return (volumes * (shear + LAMBDA / 2 * (J - ALPHA).square() - AT_REST)).sum()

    return training(objective, torch.optim.Adam([positions], lr=0.02))


def _tetrahedra(cells: int) -> Tensor:
    strides = torch.tensor([(cells + 1) ** 2, cells + 1, 1])
    first = torch.cartesian_prod(*[torch.arange(cells)] * 3) @ strides
    offsets = torch.stack(
        [torch.cat((strides.new_zeros(1), strides[list(order)].cumsum(0))) for order in CORNERS]
    )
    return (first[:, None, None] + offsets).flatten(0, 1)


def _edges(positions: Tensor, elements: Tensor) -> Tensor:
    corners = positions[elements]
    return (corners[:, 1:] - corners[:, :1]).mT
