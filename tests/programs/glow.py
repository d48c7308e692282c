"""Trains a flow of invertible 1×1 convolutions and affine couplings (Glow, arXiv 1807.03039)."""

import math

import torch
from torch import nn


class InvertibleConvolution(nn.Module):
    def __init__(self, channels):
        super().__init__()
        rotation, _ = torch.linalg.qr(torch.randn(channels, channels))
        self.weight = nn.Parameter(rotation)

    def forward(self, x):
        height, width = x.shape[2:]
        logdet = height * width * torch.slogdet(self.weight)[1]
        return nn.functional.conv2d(x, self.weight[..., None, None]), logdet

    def reverse(self, z):
        return nn.functional.conv2d(z, self.weight.inverse()[..., None, None])


class Coupling(nn.Module):
    def __init__(self, channels, hidden=16):
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(channels // 2, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 1),
        )

    def scale_and_shift(self, kept):
        scale, shift = self.network(kept).chunk(2, 1)
        return torch.sigmoid(scale + 2), shift

    def forward(self, x):
        kept, changed = x.chunk(2, 1)
        scale, shift = self.scale_and_shift(kept)
        return torch.cat((kept, changed * scale + shift), 1), scale.log().sum((1, 2, 3))

    def reverse(self, z):
        kept, changed = z.chunk(2, 1)
        scale, shift = self.scale_and_shift(kept)
        return torch.cat((kept, (changed - shift) / scale), 1)


torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
channels = 12
layers = [kind(channels) for _ in range(3) for kind in (InvertibleConvolution, Coupling)]
flow = nn.ModuleList(layers)
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
mixing = torch.randn(channels, channels)
for _ in range(10):
    images = torch.einsum("ij,bjhw->bihw", mixing, torch.randn(8, channels, 4, 4))
    z, logdet = images, 0.0
    for layer in flow:
        z, added = layer(z)
        logdet = logdet + added
    nats = 0.5 * (z.square() + math.log(2 * math.pi)).sum((1, 2, 3)) - logdet
    loss = nats.mean() / images[0].numel()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.17g}")

with torch.no_grad():
    for layer in reversed(flow):
        z = layer.reverse(z)
    print(f"{z.norm().item():.17g}")
