"""Guided filter.

A guided filter with a colour image as its guide, as kornia has it: for each pixel a 3×3 `solve`
with the covariance of the colours around it, in single precision. A network of two convolutions
that makes the guide is trained to remove noise.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

COLOURS, RADIUS, EPSILON = 3, 2, 1e-2


@model_of(
    "kornia, guided_blur with a guide of several channels; He, Sun & Tang, TPAMI 35 (2013)",
    small={"images": 2, "side": 64},
    full={"images": 2, "side": 512},
    same=1e-3,
)
def program(*, images: int, side: int) -> Step:
    coarse = torch.rand(images, COLOURS, side // 8, side // 8)
    clean = nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    noisy = clean + 0.1 * torch.randn_like(clean)
    network = nn.Sequential(
        nn.Conv2d(COLOURS, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, COLOURS, 3, padding=1)
    )

    def objective() -> Tensor:
        return (_filtered(noisy + network(noisy), noisy) - clean).square().mean()

    return training(objective, torch.optim.Adam(network.parameters(), lr=1e-3))


def _mean(x: Tensor) -> Tensor:
    return nn.functional.avg_pool2d(
        x, 2 * RADIUS + 1, stride=1, padding=RADIUS, count_include_pad=False
    )


def _filtered(guide: Tensor, image: Tensor) -> Tensor:
    b, c, h, w = guide.shape
    mean_guide, mean_image = _mean(guide), _mean(image)
    second = _mean((guide[:, :, None] * guide[:, None]).flatten(1, 2)).view(b, c, c, h, w)
    mixed = _mean((guide[:, :, None] * image[:, None]).flatten(1, 2)).view(b, c, -1, h, w)
    variance = (second - mean_guide[:, :, None] * mean_guide[:, None]).permute(0, 3, 4, 1, 2)
    covariance = (mixed - mean_guide[:, :, None] * mean_image[:, None]).permute(0, 3, 4, 1, 2)
    a = torch.linalg.solve(variance + EPSILON * torch.eye(c), covariance)
    a = a.permute(0, 3, 4, 1, 2)
    offset = mean_image - (a * mean_guide[:, :, None]).sum(1)
    a, offset = _mean(a.flatten(1, 2)).view_as(a), _mean(offset)
    return (a * guide[:, :, None]).sum(1) + offset
