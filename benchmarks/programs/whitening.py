"""Whitening for self-supervision.

W-MSE: embeddings of two views of the same images are whitened, slice by slice, by the inverse of a
`cholesky` factor of their covariance, which `solve_triangular` with the identity forms, and the
distance between both views trains the network.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

SHRINKAGE = 1e-3


@model_of(
    "htdt/self-supervised, Whitening2d; Ermolov et al., arXiv 2007.06346",
    small={"images": 256, "features": 128, "embedding": 64, "piece": 128},
    full={"images": 512, "features": 2048, "embedding": 64, "piece": 128},
    same=1e-3,
)
def program(*, images: int, features: int, embedding: int, piece: int) -> Step:
    seen = torch.randn(images, features)
    views = [seen + 0.5 * torch.randn_like(seen) for _ in range(2)]
    network = nn.Sequential(
        nn.Linear(features, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, embedding)
    )
    eye = torch.eye(embedding)

    def whitened(x: Tensor) -> Tensor:
        x = x - x.mean(0)
        covariance = x.mT @ x / (len(x) - 1)
        L = torch.linalg.cholesky((1 - SHRINKAGE) * covariance + SHRINKAGE * eye)
        return x @ torch.linalg.solve_triangular(L, eye, upper=False).mT

    def objective() -> Tensor:
        pieces = [network(view).split(piece) for view in views]
        ends = [nn.functional.normalize(torch.cat([*map(whitened, of)]), dim=1) for of in pieces]
        return 2 - 2 * (ends[0] * ends[1]).sum(1).mean()

    return training(objective, torch.optim.Adam(network.parameters(), lr=3e-3))
