"""The linear algebra of some programs by a factor that is held, in place of calls of torch.

`named("gp").step(algebra=ALGEBRA["gp"])` is a program so. `python -m benchmarks.factor_programs` times
steps of all beside those by torch, in pairs and by processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

import strategies
from benchmarks.programs import named
from benchmarks.programs.program import Step

__all__ = ["ALGEBRA"]


def _likelihood(K: Tensor, y: Tensor) -> Tensor:
    inv_quad, logdet = strategies.factor(K, "spd").inv_quad_logdet(y)
    return inv_quad + logdet


def _innovation(S: Tensor, innovation: Tensor, crossing: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    f = strategies.factor(S, "spd")
    squared, logdet = f.inv_quad_logdet(innovation)
    return squared, logdet, f.solve(crossing.mT).mT


def _positive_definite(A: Tensor, B: Tensor) -> Tensor:
    return strategies.factor(A, "spd").solve(B)


ALGEBRA: Mapping[str, Callable[..., Any]] = {
    "gauss_newton": _positive_definite,
    "gp": _likelihood,
    "kalman": _innovation,
    "mvdr": _positive_definite,
    "qp": lambda matrices: strategies.factor(matrices).solve,
}
"""By the names of the programs."""


def main(size: str, pairs: int = 10) -> None:
    """Prints the median of paired ratios, and their range."""
    torch.set_num_threads(1)  # else threads that wait for work are counted as busy
    for name, algebra in ALGEBRA.items():
        steps = named(name).step(size), named(name).step(size, algebra=algebra)
        for step in steps:
            step()
        ratios = sorted(_seconds(steps[0]) / _seconds(steps[1]) for _ in range(pairs))
        print(f"{name}: {ratios[pairs // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def _seconds(step: Step) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "small")
