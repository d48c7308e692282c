"""The linear algebra of some programs by a factor that is held, in place of calls of torch.

`named("gp").step(algebra=ALGEBRA["gp"])` is a program so. `python -m benchmarks.factor_programs` times what
a factor is used for, and steps of all, beside the same by torch, in pairs and by processor time.
"""

import itertools
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

import strategies
from benchmarks.programs import named
from benchmarks.programs.program import Step


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

_ROWS = 512, 2048
"""Of the matrices whose factor is used alone."""

_USES = 10


def _pairs_of_uses(rows: int) -> Iterator[tuple[str, Step, Step]]:
    """What a factor of one matrix is used for, by torch and by a factor: forward and backward."""
    torch.manual_seed(0)
    A, y = torch.randn(rows, rows, dtype=torch.float64), torch.randn(rows, dtype=torch.float64)
    K = (A @ A.mT / rows + torch.eye(rows, dtype=torch.float64)).requires_grad_()

    def likelihood() -> Tensor:
        L = torch.linalg.cholesky(K)
        x = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        return y @ x + 2 * L.diagonal().log().sum()

    def solves(solve: Callable[[Tensor], Tensor]) -> Tensor:
        b = y
        for _ in range(_USES):
            b = solve(b).tanh()
        return b.sum()

    def step(loss: Callable[[], Tensor]) -> Step:
        return lambda: torch.autograd.grad(loss(), K)[0]

    yield f"inv_quad_logdet {rows}", step(likelihood), step(lambda: _likelihood(K, y))
    by_torch = step(lambda: solves(lambda b: torch.linalg.solve(K, b)))
    yield f"ten solves {rows}", by_torch, step(lambda: solves(strategies.factor(K).solve))


def _pairs_of_programs(size: str) -> Iterator[tuple[str, Step, Step]]:
    for name, algebra in ALGEBRA.items():
        yield name, named(name).step(size), named(name).step(size, algebra=algebra)


def main(size: Annotated[str, typer.Argument()] = "small", pairs: int = 10) -> None:
    """Prints the median of paired ratios, and their range."""
    torch.set_num_threads(1)  # else threads that wait for work are counted as busy
    uses = itertools.chain.from_iterable(map(_pairs_of_uses, _ROWS))
    for name, *steps in itertools.chain(uses, _pairs_of_programs(size)):
        for step in steps:
            step()
        timers = [timeit.Timer(step, timer=time.process_time) for step in steps]
        times = ([timer.timeit(1) for timer in timers] for _ in range(pairs))
        ratios = sorted(by_torch / by_factor for by_torch, by_factor in times)
        print(f"{name}: {ratios[pairs // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    typer.run(main)
