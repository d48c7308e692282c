"""Dereverberation.

Dereverberation by weighted prediction errors, behind a network that estimates the power of the
speech: late reverberation is predicted from frames some time ago, for each frequency with the
complex `inverse` of the correlation of all channels and taps. The network is trained by the error
of what is left.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, real_and_imaginary, training

DELAY, FLOOR = 3, 1e-6


@model_of(
    "espnet/espnet and nttcslab-sp/dnn_wpe; Kinoshita et al., Interspeech 2017",
    small={"batch": 1, "channels": 2, "taps": 5, "frequencies": 257, "frames": 80},
    full={"batch": 4, "channels": 8, "taps": 5, "frequencies": 257, "frames": 300},
    same=1e-4,
)
def program(*, batch: int, channels: int, taps: int, frequencies: int, frames: int) -> Step:
    dry = real_and_imaginary(batch, frequencies, channels, frames)
    dry = dry * (torch.rand(batch, frequencies, 1, frames) < 0.3)
    reverberant = dry.clone()
    for shift in range(DELAY, DELAY + taps):
        mixing = 0.5**shift * real_and_imaginary(batch, frequencies, channels, channels)
        reverberant[..., shift:] += 3 * mixing @ dry[..., :-shift]
    loudness = reverberant[:, :, 0].abs().log1p().float().mT
    network = nn.Sequential(
        nn.Linear(frequencies, 64), nn.ReLU(), nn.Linear(64, frequencies), nn.Sigmoid()
    )
    padded = nn.functional.pad(reverberant, (DELAY + taps - 1, 0))
    windows = padded.unfold(-1, taps, 1)[..., :frames, :]
    past = windows.permute(0, 1, 2, 4, 3).flatten(2, 3)
    observed = reverberant.abs().square().mean(2, keepdim=True)
    eye = torch.eye(channels * taps, dtype=past.dtype)

    def objective() -> Tensor:
        mask = network(loudness).mT.double().unsqueeze(2)
        weighted = past / (mask * observed + FLOOR)
        R, P = weighted @ past.mH, weighted @ reverberant.mH
        loading = 1e-8 * R.diagonal(dim1=-2, dim2=-1).real.sum(-1)[..., None, None]
        filters = torch.inverse(R + loading * eye) @ P
        found = reverberant - filters.mH @ past
        return (found - dry).abs().square().mean()

    return training(objective, torch.optim.Adam(network.parameters(), lr=1e-3))
