"""Kalman filter.

A Kalman filter whose noise covariances are trained by the likelihood of its innovations: at every
time one `inverse` and one `slogdet` of a batch of innovation covariances, and the gradient goes
back through all times.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.programs.program import Step, model_of, training

Algebra = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def by_inverse(S: Tensor, innovation: Tensor, crossing: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of covariances S, the quadratic forms of innovations, log det S, and the gains, crossing · S⁻¹."""
    inverse = torch.linalg.inv(S)
    squared = (innovation.mT @ inverse @ innovation).flatten()
    return squared, torch.linalg.slogdet(S).logabsdet, crossing @ inverse


@model_of(
    "the filter of Kalman (1960) as state-space libraries train it, for example strongio/torchcast",
    small={"batch": 64, "states": 8, "seen": 4, "times": 20},
    full={"batch": 512, "states": 16, "seen": 8, "times": 50},
)
def program(
    *, batch: int, states: int, seen: int, times: int, algebra: Algebra = by_inverse
) -> Step:
    double = torch.float64
    rotation, _ = torch.linalg.qr(torch.randn(states, states, dtype=double))
    F, H = 0.95 * rotation, torch.randn(seen, states, dtype=double)
    x = torch.randn(batch, states, 1, dtype=double)
    readings = []
    for _ in range(times):
        x = F @ x + 0.3 * torch.randn_like(x)
        readings.append(H @ x + 0.5 * torch.randn(batch, seen, 1, dtype=double))
    log_q = torch.zeros(batch, states, dtype=double, requires_grad=True)
    log_r = torch.zeros(batch, seen, dtype=double, requires_grad=True)
    eye = torch.eye(states, dtype=double)

    def objective() -> Tensor:
        mean = torch.zeros(batch, states, 1, dtype=double)
        P, Q, R = eye.expand(batch, -1, -1), log_q.exp().diag_embed(), log_r.exp().diag_embed()
        nats = torch.zeros(batch, dtype=double)
        for reading in readings:
            mean, P = F @ mean, F @ P @ F.mT + Q
            S = H @ P @ H.mT + R
            innovation = reading - H @ mean
            squared, logdet, K = algebra(S, innovation, P @ H.mT)
            nats = nats + 0.5 * (squared + logdet)
            mean, P = mean + K @ innovation, (eye - K @ H) @ P
        return nats.mean() / times

    return training(objective, torch.optim.Adam([log_q, log_r], lr=0.05))
