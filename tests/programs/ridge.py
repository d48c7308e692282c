"""Learns an embedding by a ridge regression in its last layer (R2D2, arXiv 1805.08136)."""

import torch
from torch import nn


class Ridge(nn.Module):
    """Fits a linear classifier to the support set in closed form."""

    def __init__(self):
        super().__init__()
        self.log_penalty = nn.Parameter(torch.zeros(()))

    def forward(self, support, labels):
        eye = torch.eye(support.shape[-2])
        gram = support @ support.mT + self.log_penalty.exp() * eye
        return support.mT @ torch.linalg.solve(gram, labels)


torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
tasks, ways, shots, queries, width = 8, 5, 5, 10, 20
embedding = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 24))
ridge = Ridge()
optimizer = torch.optim.SGD([*embedding.parameters(), *ridge.parameters()], lr=0.05)
for _ in range(15):
    means = torch.randn(tasks, ways, 1, width)
    support = (means + torch.randn(tasks, ways, shots, width)).flatten(1, 2)
    query = (means + torch.randn(tasks, ways, queries, width)).flatten(1, 2)
    labels = torch.eye(ways).repeat_interleave(shots, 0).expand(tasks, -1, -1)
    truth = torch.arange(ways).repeat_interleave(queries).expand(tasks, -1)
    logits = embedding(query) @ ridge(embedding(support), labels)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), truth.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.17g}")
