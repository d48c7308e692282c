"""Slater determinants.

Quantum Monte Carlo with Slater determinants, as QMCTorch has it: for thousands of walkers `det` of
the matrix of orbitals, for the weight of a walker, and its `inverse`, for the kinetic energy by
Jacobi's formula. The exponents of the orbitals and their mixing are trained by the energy.
"""

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training


def draw(*, walkers: int, electrons: int) -> tuple[Tensor, ...]:
    """Distances from the nuclei and the potential there, the logarithms of exponents, and mixing."""
    double = torch.float64
    nuclei = 1.5 * torch.randn(electrons, 3, dtype=double)
    positions = nuclei + torch.randn(walkers, electrons, 3, dtype=double)
    distance = (positions[:, :, None] - nuclei).norm(dim=-1)
    others = (positions[:, :, None] - positions[:, None]).norm(dim=-1)
    pairs = torch.triu_indices(electrons, electrons, 1)
    potential = (1 / others[:, *pairs]).sum(-1) - electrons**0.5 * (1 / distance).sum((-2, -1))
    log_exponents = torch.zeros(electrons, dtype=double)
    return distance, potential, log_exponents, torch.eye(electrons, dtype=double)


@model_of(
    "NLESC-JCER/QMCTorch, SlaterPooling and KineticPooling",
    small={"walkers": 2000, "electrons": 6},
    full={"walkers": 5000, "electrons": 20},
    same=1e-6,
)
def program(*, walkers: int, electrons: int) -> Step:
    distance, potential, *parameters = draw(walkers=walkers, electrons=electrons)
    log_exponents, mixing = (each.requires_grad_() for each in parameters)

    def objective() -> Tensor:
        zeta = log_exponents.exp()
        atomic = (-zeta * distance).exp()
        laplacian = (zeta.square() - 2 * zeta / distance) * atomic
        orbitals, curvature = atomic @ mixing, laplacian @ mixing
        psi = torch.det(orbitals)
        inverse = torch.inverse(orbitals)
        kinetic = -0.5 * (inverse.mT * curvature).sum((-2, -1))
        weight = (psi / psi.detach()).square()
        local = (kinetic + potential).clamp(-1e3, 1e3)
        return (weight * local).mean() / weight.mean()

    return training(objective, torch.optim.Adam([log_exponents, mixing], lr=1e-3))
