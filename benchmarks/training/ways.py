"""The ways to run a program: as it is, by "auto", by one strategy that is named."""

from __future__ import annotations

import contextlib
import timeit
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

import strategies
from benchmarks.programs.program import Program
from strategies import policy
from strategies.measuring.clock import Sampler, synchronized_timer
from strategies.measuring.memory import peak_bytes
from strategies.selection.stability import AUTO

__all__ = ["AUTO", "TORCH", "best_strategy", "losses", "memory", "moved_losses", "sampler", "way"]

TORCH = "torch"
"""The program as it is; of the others, the name is "auto" or that of a strategy."""

_TIMED = 5
"""Steps of a sample."""

_SAMPLES = 3


@contextlib.contextmanager
def way(name: str) -> Iterator[None]:
    """What is around a program to run it so.

    Example:
        >>> with way("qr_pinv"):
        ...     strategies.is_replaced("inv")
        True
    """
    with contextlib.ExitStack() as stack:
        if name != TORCH:
            stack.enter_context(strategies.replace_torch())
        if name not in (TORCH, AUTO):
            stack.enter_context(policy.use(name))
        yield


def losses(program: Program, size: str, name: str, steps: int) -> list[float]:
    """The losses of the first steps."""
    step = program.step(size)
    with way(name):
        return [step().item() for _ in range(steps)]


def moved_losses(program: Program, size: str, steps: int) -> list[float]:
    """PyTorch's losses where every parameter moves by a rounding before the optimizer's first step.

    That is one of the largest entry of its tensor, or of 1 where all are zero. By as much as these differ
    from its own losses, rounding explains a difference.
    """

    def move(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        hook.remove()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                x = parameter.detach()
                reals = torch.view_as_real(x) if x.is_complex() else x
                largest = float(reals.abs().max()) or 1.0
                reals += torch.finfo(reals.dtype).eps * largest

    hook = register_optimizer_step_pre_hook(move)
    return losses(program, size, TORCH, steps)


def sampler(program: Program, size: str, name: str) -> Sampler:
    """Times a program's second to sixth step, in seconds per step; each sample begins it anew.

    So all ways are timed in the same steps. What has trained on the same data for long is another
    problem, and often a badly conditioned one.
    """

    def sample() -> float:
        step = program.step(size)
        with way(name):
            step()
            return timeit.Timer(step, timer=synchronized_timer).timeit(_TIMED) / _TIMED

    sample()
    return sample


def memory(program: Program, size: str, name: str) -> int:
    """The most bytes that a step holds at once, above parameters, data and the optimizer's state."""
    step = program.step(size)
    with way(name):
        step()
        return peak_bytes(step)


def best_strategy(program: Program, size: str) -> str:
    """The one strategy that, named for all operations, makes the program fastest.

    What a strategy cannot do in the forward is PyTorch's; one that fails in the backward is none.

    Raises:
        RuntimeError: none can run it.
    """
    took = {}
    for name in strategies.available():
        with contextlib.suppress(RuntimeError):
            sample = sampler(program, size, name)
            took[name] = min(sample() for _ in range(_SAMPLES))
    if not took:
        raise RuntimeError(f"no strategy can run {program.name}")
    return min(took, key=took.__getitem__)
