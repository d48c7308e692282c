"""The ways to run a program: as it is, by "auto", by one strategy that is named; and in JAX."""

import contextlib
import importlib.util
import math
import timeit
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

import strategies
from benchmarks.peers.jax_program_peer import MODELS, STEP
from benchmarks.peers.process import Peer
from benchmarks.programs.program import Program
from strategies import policy
from strategies.measuring import peak_bytes
from strategies.measuring.clock import Sampler, synchronized_timer
from strategies.selection.stability import AUTO

TORCH = "torch"
"""The program as it is; of the others, the name is "auto" or that of a strategy."""

JAX = "jax"
"""The program once more: `benchmarks.peers.jax_program_peer`."""

_SAME = 1e-5
"""Relative difference of the first losses that libraries may have between them."""

_TIMED = {"small": 5, "full": 1}
"""Steps of a sample."""

_SAMPLES = {"small": 3, "full": 1}


@contextlib.contextmanager
def way(name: str) -> Iterator[None]:
    """What is around a program to run it so."""
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
    """Times a program's second to sixth step, or the second of a full size, in seconds per step.

    Each sample begins it anew, so all ways are timed in the same steps. What has trained on the same data
    for long is another problem, and often a badly conditioned one.
    """

    def sample() -> float:
        step = program.step(size)
        with way(name):
            step()
            steps = _TIMED[size]
            return timeit.Timer(step, timer=synchronized_timer).timeit(steps) / steps

    sample()
    return sample


def memory(program: Program, size: str, name: str) -> int:
    """The most bytes that a step holds at once, above parameters, data and the optimizer's state."""
    step = program.step(size)
    with way(name):
        step()
        return peak_bytes(step)


def best_strategy(program: Program, size: str) -> str:
    """The one strategy that, named for all operations, makes the program fastest; or RuntimeError.

    What a strategy cannot do in the forward is PyTorch's; one that fails in the backward is none.
    """
    took = {}
    for name in strategies.available():
        with contextlib.suppress(RuntimeError):
            sample = sampler(program, size, name)
            took[name] = min(sample() for _ in range(_SAMPLES[size]))
    if not took:
        raise RuntimeError(f"no strategy can run {program.name}")
    return min(took, key=took.__getitem__)


@contextlib.contextmanager
def jax_sampler(program: Program, size: str, course: list[float]) -> Iterator[dict[str, Sampler]]:
    """What times a step in JAX, by name; nothing without JAX, or of a program that is not written in it.

    RuntimeError, if JAX's first losses are not those of the course by PyTorch: it does other work then.
    """
    if program.name not in MODELS or importlib.util.find_spec("jax") is None:
        yield {}
        return
    with Peer("jax_program", torch.get_num_threads()) as peer:
        pairs = [
            *zip(
                map(float, peer.prepare((program.name, program.sizes[size]))), course, strict=False
            )
        ]
        if not all(math.isclose(*pair, rel_tol=_SAME) for pair in pairs):
            raise RuntimeError(f"the losses of {program.name} by JAX and by PyTorch are {pairs}")
        yield {JAX: peer.sampler(STEP)}
