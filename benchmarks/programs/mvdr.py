"""MVDR beamforming.

A microphone array with a beamformer behind a network: masks of speech and noise give two spatial
covariances for each frequency, and a complex `solve` of batch times frequencies small systems gives
the filter of Souden's MVDR. The network is trained by the error of what it lets through.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, real_and_imaginary, training

LOADING = 1e-7


def by_solve(A: Tensor, B: Tensor) -> Tensor:
    """A⁻¹B, A Hermitian and positive definite."""
    return torch.linalg.solve(A, B)


@model_of(
    "pytorch/audio, torchaudio.transforms.SoudenMVDR",
    small={"batch": 1, "channels": 6, "frequencies": 257, "frames": 60, "hidden": 64},
    full={"batch": 4, "channels": 8, "frequencies": 513, "frames": 250, "hidden": 512},
    same=1e-4,
)
def program(
    *,
    batch: int,
    channels: int,
    frequencies: int,
    frames: int,
    hidden: int,
    algebra: Callable[[Tensor, Tensor], Tensor] = by_solve,
) -> Step:
    steering = real_and_imaginary(batch, frequencies, channels, 1)
    speech = real_and_imaginary(batch, frequencies, 1, frames)
    speech = speech * (torch.rand(batch, frequencies, 1, frames) < 0.3)
    noise = 0.3 * real_and_imaginary(batch, frequencies, channels, frames)
    heard = steering / steering[..., :1, :] * speech + noise
    loudness = heard[:, :, 0].abs().log1p().float().mT
    network = nn.Sequential(
        nn.Linear(frequencies, hidden), nn.ReLU(), nn.Linear(hidden, 2 * frequencies), nn.Sigmoid()
    )
    eye = torch.eye(channels, dtype=heard.dtype)

    def objective() -> Tensor:
        masks = network(loudness).mT.double().unflatten(1, (2, frequencies))
        of_speech, of_noise = (_covariance(heard, masks[:, i]) for i in range(2))
        loading = LOADING * of_noise.diagonal(dim1=-2, dim2=-1).real.mean(-1)[..., None, None]
        ratio = algebra(of_noise + loading * eye, of_speech)
        trace = ratio.diagonal(dim1=-2, dim2=-1).sum(-1)
        weights = ratio[..., :1] / (trace[..., None, None] + 1e-8)
        found = weights.mH @ heard
        return (found - speech).abs().square().mean()

    return training(objective, torch.optim.Adam(network.parameters(), lr=1e-3))


def _covariance(heard: Tensor, mask: Tensor) -> Tensor:
    mask = mask[:, :, None]
    total = (mask * heard) @ heard.mH
    return total / mask.sum(-1, keepdim=True)
