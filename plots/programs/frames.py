"""Measured programs as tables for the figures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from benchmarks.programs import named
from benchmarks.training.results import Result
from strategies.selection.text import seconds, size

__all__ = ["AUTO", "BEST", "CEILING", "JAX", "MEMORY", "STEP", "bars", "courses"]

AUTO, BEST, CEILING = '"auto"', "the best single strategy", "if these calls took no time"
JAX = "the program in JAX"
STEP, MEMORY = "time of a step", "peak memory of a step"


def bars(results: Sequence[Result]) -> pd.DataFrame:
    """A row for each program, way and quantity: how many times less than PyTorch it takes.

    The columns: `program`; `label`, with what PyTorch takes; `shown`, `STEP` or `MEMORY`; `way`,
    `JAX` or `CEILING`; `value`, with the ends of a 95 % interval as `low` and `high`; `measured_on`.
    """
    rows = []
    for each in sorted(results, key=lambda each: -each.faster(each.auto)[0]):
        of_torch = {STEP: seconds(each.torch.step.seconds), MEMORY: size(each.torch.peak_bytes)}
        found = [(STEP, CEILING, (each.ceiling,) * 3)]
        found += [(STEP, JAX, each.by_jax)] if each.by_jax else []
        for name, way in ((AUTO, each.auto), (BEST, each.tuned)):
            found += [(STEP, name, each.faster(way)), (MEMORY, name, (1 / each.memory(way),) * 3)]
        for shown, name, (value, low, high) in found:
            rows.append(
                {
                    "program": each.program,
                    "label": f"{each.program} ({of_torch[shown]})",
                    "shown": shown,
                    "way": name,
                    "value": value,
                    "low": low,
                    "high": high,
                    "measured_on": each.machine,
                }
            )
    return pd.DataFrame(rows).sort_values("shown", ascending=False, kind="stable")


def courses(results: Sequence[Result]) -> pd.DataFrame:
    """The losses of programs that PyTorch's gradient does not train: a row for each way and step.

    The columns: `program`, its title; `way`; `step`; `loss`; `measured_on`.
    """
    return pd.DataFrame(
        [
            {
                "program": named(each.program).title,
                "way": name,
                "step": step,
                "loss": loss,
                "measured_on": each.machine,
            }
            for each in results
            if named(each.program).differs
            for name, way in (("PyTorch", each.torch), (AUTO, each.auto))
            for step, loss in enumerate(way.losses)
        ]
    )
