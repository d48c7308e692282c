"""Flow of invertible 1×1 convolutions.

A flow of invertible 1×1 convolutions and affine couplings is trained by maximum likelihood; each
convolution adds the `slogdet` of its weight. Convolutions take nearly all of the time, so that
nothing is to be gained here, and nothing may be lost.
"""

import math

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training


class Flow(nn.Module):
    """One step of the flow."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(channels, channels))[0])
        self.network = nn.Sequential(
            nn.Conv2d(channels // 2, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, hidden, 1),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        pixels = x.shape[2] * x.shape[3]
        logdet = pixels * torch.slogdet(self.weight)[1]
        kept, changed = nn.functional.conv2d(x, self.weight[..., None, None]).chunk(2, 1)
        scale, shift = self.network(kept).chunk(2, 1)
        scale = torch.sigmoid(scale + 2)
        added = scale.log().sum((1, 2, 3))
        return torch.cat((kept, changed * scale + shift), 1), logdet + added


@model_of(
    "openai/glow; Kingma & Dhariwal, arXiv 1807.03039",
    small={"images": 8, "channels": 12, "side": 16, "steps": 8, "hidden": 32},
    full={"images": 16, "channels": 48, "side": 8, "steps": 32, "hidden": 512},
    same=1e-3,
)
def program(*, images: int, channels: int, side: int, steps: int, hidden: int) -> Step:
    mixing = torch.randn(channels, channels)
    data = torch.einsum("ij,bjhw->bihw", mixing, torch.randn(images, channels, side, side))
    flow = nn.ModuleList(Flow(channels, hidden) for _ in range(steps))

    def objective() -> Tensor:
        z, logdet = data, torch.zeros(images)
        for step in flow:
            z, added = step(z)
            logdet = logdet + added
        nats = 0.5 * (z.square() + math.log(2 * math.pi)).sum((1, 2, 3)) - logdet
        return nats.mean() / data[0].numel()

    return training(objective, torch.optim.Adam(flow.parameters(), lr=1e-3))
