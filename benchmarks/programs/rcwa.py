"""Rigorous coupled-wave analysis.

Rigorous coupled-wave analysis of a grating of two layers in TM polarization: modes of each layer by
`eig`, its scattering matrix by complex `inv`, both layers joined by Redheffer's star product with
two more. The profile of the permittivity is trained to send light into one order.
"""

import math

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training

PERIOD, THICKNESS, ANGLE = 2.6, 0.35, 0.1
"""In wavelengths, and radians."""


@model_of(
    "kch3782/torcwa; Moharam et al., J. Opt. Soc. Am. A 12 (1995); Rumpf, PIER B 35 (2011)",
    small={"orders": 24, "pixels": 256},
    full={"orders": 480, "pixels": 4096},
    same=1e-6,
)
def program(*, orders: int, pixels: int) -> Step:
    count = 2 * orders + 1
    order = torch.arange(-orders, orders + 1, dtype=torch.float64)
    kx = (math.sin(ANGLE) + order / PERIOD).to(torch.complex128)
    free = _decay(kx.square() - 1)
    pixel = torch.arange(pixels, dtype=torch.float64) / pixels
    harmonics = torch.arange(-2 * orders, 2 * orders + 1, dtype=torch.float64)
    fourier = torch.exp(-2j * math.pi * harmonics[:, None] * pixel) / pixels
    toeplitz = torch.arange(count)[:, None] - torch.arange(count) + 2 * orders
    profile = torch.randn(2, pixels, dtype=torch.float64, requires_grad=True)
    source = torch.zeros(count, 1, dtype=torch.complex128)
    source[orders] = 1
    wanted = orders + 1

    def layer(profile: Tensor) -> tuple[Tensor, Tensor]:
        """Reflection and transmission of a layer between two gaps, which is the same from both sides."""
        permittivity = 1 + 3 * torch.sigmoid(profile)
        E = (fourier @ permittivity.to(fourier.dtype))[toeplitz]
        inverse = torch.linalg.inv(E)
        squares, W = torch.linalg.eig(E @ (kx[:, None] * inverse * kx - torch.eye(count)))
        decay = _decay(squares)
        V = inverse @ W * decay
        of_fields, of_slopes = torch.linalg.inv(W), torch.linalg.inv(V) * free
        A, B = of_fields + of_slopes, of_fields - of_slopes
        X = torch.exp(-2 * math.pi * THICKNESS * decay)[:, None]
        A_inverse = torch.linalg.inv(A)
        XB, XA = X * B, X * A
        D = torch.linalg.inv(A - XB @ A_inverse @ XB)
        return D @ (XB @ A_inverse @ XA - B), D @ (X * (A - B @ A_inverse @ B))

    def objective() -> Tensor:
        (R1, T1), (R2, T2) = layer(profile[0]), layer(profile[1])
        eye = torch.eye(count, dtype=R1.dtype)
        inner = torch.linalg.inv(eye - R1 @ R2)
        outer = torch.linalg.inv(eye - R2 @ R1)
        transmitted = T2 @ inner @ T1 @ source
        reflected = R1 @ source + T1 @ outer @ R2 @ T1 @ source
        efficiency = free[wanted].imag / free[orders].imag * transmitted[wanted, 0].abs().square()
        return 1 - efficiency + 0.1 * reflected[orders, 0].abs().square()

    return training(objective, torch.optim.Adam([profile], lr=0.02))


def _decay(squares: Tensor) -> Tensor:
    """The square root of modes that decay or run forward."""
    root = torch.sqrt(squares)
    return torch.where(root.real.abs() > 1e-9 * root.abs(), root * root.real.sign(), root)
