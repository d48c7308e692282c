"""One program, measured in every way."""

import math

import strategies
from benchmarks.programs.program import Program
from benchmarks.training import ways
from benchmarks.training.choices import choice
from benchmarks.training.results import Losses, Result, Way
from benchmarks.training.ways import JAX, TORCH
from strategies.integration.recording import Recording
from strategies.measuring import describe
from strategies.measuring.timing import interleaved
from strategies.selection.stability import AUTO

_RECORDED = 20
"""Steps that are recorded."""

_ROUNDS = 120


def measured(program: Program, size: str, *, steps: int, budget: float) -> Result:
    """Runs a program by PyTorch, by "auto" and by the best strategy, and keeps the losses of some steps.

    The budget, in seconds, is for the rounds in which steps are timed, and a twentieth for each call.
    """
    machine, recording = describe(), recorded(program, size, min(_RECORDED, steps))
    tuned = ways.best_strategy(program, size)
    courses = {name: ways.losses(program, size, name, steps) for name in (TORCH, AUTO)}
    names = (TORCH, AUTO, tuned)
    held = {name: ways.memory(program, size, name) for name in names}
    samplers = {name: ways.sampler(program, size, name) for name in names}
    with ways.jax_sampler(program, size, courses[TORCH]) as of_jax:
        timings = interleaved(samplers | of_jax, budget=budget, max_rounds=_ROUNDS)
    choices = (
        choice(case, count / min(_RECORDED, steps), budget / 20)
        for case, count in recording.workload().cases().items()
    )

    def way(name: str) -> Way:
        return Way(name, timings[name], held[name], _finite(courses.get(name, [])))

    return Result(
        program=program.name,
        size=size,
        machine=machine,
        torch=way(TORCH),
        auto=way(AUTO),
        tuned=way(tuned),
        jax=timings.get(JAX),
        forward=sum(call.forward for call in recording.calls) / recording.seconds,
        backward=sum(call.backward for call in recording.calls) / recording.seconds,
        choices=tuple(choices),
        moved=_finite(ways.moved_losses(program, size, steps)),
    )


def recorded(program: Program, size: str, steps: int) -> Recording:
    """The calls of some of PyTorch's steps, of which the first is not among them."""
    step = program.step(size)
    step()
    with strategies.record() as recording:
        for _ in range(steps):
            step()
    return recording


def _finite(course: list[float]) -> Losses:
    return tuple(loss if math.isfinite(loss) else None for loss in course)
