"""Koopman operators by least squares.

Koopa's layer for time-variant dynamics: the operator that takes each segment of a series to the
next one is fitted by `lstsq` to the few segments there are, in a latent space of more dimensions,
and the encoder and decoder are trained through the fit. The matrices are wide. PyTorch's backward
goes through their pseudoinverse.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training


@model_of(
    "thuml/Koopa, KPLayer; Liu et al., arXiv 2305.18803",
    small={"batch": 16, "segments": 6, "length": 16, "dimensions": 32},
    full={"batch": 32, "segments": 9, "length": 48, "dimensions": 128},
    same=1e-3,
    differs=(
        "in some steps PyTorch's `lstsq` takes one of the matrices, of a condition number of 100, for "
        "deficient, and its solution is wrong in every digit: the driver reads pivots that nobody has set "
        "(pytorch 187411)"
    ),
)
def program(*, batch: int, segments: int, length: int, dimensions: int) -> Step:
    times = torch.arange((segments + 1) * length) / length
    phases = torch.rand(batch, 1) * 6
    series = torch.sin(times + phases) + 0.3 * torch.sin(2.7 * times) + 0.1 * torch.randn(batch, 1)
    series = series + 0.05 * torch.randn_like(series)
    pieces = series.unflatten(1, (segments + 1, length))
    encoder, decoder = (
        nn.Sequential(nn.Linear(a, 64), nn.Tanh(), nn.Linear(64, b))
        for a, b in ((length, dimensions), (dimensions, length))
    )

    def objective() -> Tensor:
        z = encoder(pieces[:, :-1])
        K = torch.linalg.lstsq(z[:, :-1], z[:, 1:]).solution
        fitted = torch.cat((z[:, :1], z[:, :-1] @ K), 1)
        predicted = decoder(torch.cat((fitted, z[:, -1:] @ K), 1))
        return (predicted - pieces).square().mean()

    parameters = [*encoder.parameters(), *decoder.parameters()]
    return training(objective, torch.optim.Adam(parameters, lr=1e-3))
