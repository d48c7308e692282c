"""Variable projection.

Decays of several rates are fitted to many curves by variable projection: amplitudes by `lstsq` of a
tall matrix of exponentials, the rates, common to all curves, by the gradient through it, on times
that the fit has not seen. The exponentials are nearly dependent and the curves nearly consistent
with them.
"""

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training


def draw(*, times: int, decays: int, curves: int) -> tuple[Tensor, ...]:
    """Times, curves, and the logarithms of the rates to begin with."""
    double = torch.float64
    time = torch.linspace(0, 4, 2 * times, dtype=double)
    rates = torch.linspace(0.3, 3.0, decays, dtype=double)
    data = (-time[:, None] * rates).exp() @ torch.rand(decays, curves, dtype=double)
    data = data + 1e-6 * torch.randn_like(data)
    return time, data, rates.log() + 0.2 * torch.randn_like(rates)


@model_of(
    "Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973); Newman et al., arXiv 2007.13171",
    small={"times": 1000, "decays": 4, "curves": 16},
    full={"times": 4000, "decays": 6, "curves": 64},
)
def program(*, times: int, decays: int, curves: int) -> Step:
    time, data, log_rates = draw(times=times, decays=decays, curves=curves)
    log_rates.requires_grad_()

    def objective() -> Tensor:
        basis = (-time[:, None] * log_rates.exp()).exp()
        amplitudes = torch.linalg.lstsq(basis[::2], data[::2]).solution
        errors = basis[1::2] @ amplitudes - data[1::2]
        return errors.square().sum(0).add(1e-14).log().mean()

    return training(objective, torch.optim.Adam([log_rates], lr=5e-3))
