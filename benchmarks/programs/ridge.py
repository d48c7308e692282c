"""Ridge regression head of a few-shot classifier.

R2D2's classifier of few samples: ridge regression of the labels on the embedding of 75 labelled
samples, for 8 tasks at once, by `solve` with the identity, in single precision. The loss of other
samples trains the embedding, here of features that were extracted before.
"""

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Step, model_of, training

WAYS, SHOTS, QUERIES = 5, 15, 6


@model_of(
    "kjunelee/MetaOptNet, MetaOptNetHead_Ridge; Bertinetto et al., arXiv 1805.08136",
    small={"tasks": 8, "features": 128, "embedding": 128},
    full={"tasks": 8, "features": 640, "embedding": 512},
    same=1e-3,
)
def program(*, tasks: int, features: int, embedding: int) -> Step:
    means = torch.randn(tasks, WAYS, 1, features)
    support, query = (
        (means + 2 * torch.randn(tasks, WAYS, count, features)).flatten(1, 2)
        for count in (SHOTS, QUERIES)
    )
    labels = torch.eye(WAYS).repeat_interleave(SHOTS, 0).expand(tasks, -1, -1)
    truth = torch.arange(WAYS).repeat_interleave(QUERIES).repeat(tasks)
    network = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, embedding))
    log_penalty, log_scale = (nn.Parameter(torch.tensor(value)) for value in (4.0, 0.0))
    eye = torch.eye(WAYS * SHOTS)

    def objective() -> Tensor:
        known, asked = network(support), network(query)
        gram = known @ known.mT + log_penalty.exp() * eye
        inverse = torch.linalg.solve(gram, eye.expand_as(gram))
        logits = asked @ known.mT @ (inverse @ labels) * log_scale.exp()
        return nn.functional.cross_entropy(logits.flatten(0, 1), truth)

    parameters = [*network.parameters(), log_penalty, log_scale]
    return training(objective, torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True))
