"""Stability ratios of PyTorch's derivative and of a patch, in the same cases drawn to be hard."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from strategies import operations
from strategies.measuring.case import Case
from strategies.measuring.measurement import WORST_RATIO, Measurement
from strategies.measuring.stability import Tensors, judged_cells
from strategies.policy import BASELINE
from strategies.selection.draws import hard_cases
from upstream.patch import enabled

__all__ = ["certified_ratios"]


def certified_ratios(
    patch: str, operation: str, seed: int, count: int
) -> Iterator[tuple[float, float]]:
    """The largest ratio of a gradient, by PyTorch and by a patch, in each case.

    `strategies.accuracy.stability` says what the ratio is. That of results does not count: they are
    PyTorch's in both. Where there is no gradient it is `WORST_RATIO`.

    Args:
        patch: its name.
        operation: as `strategies.operations` names it.
        seed: determines the cases.
        count: of the cases.
    """

    def patched(case: Case) -> tuple[Tensors, Tensors]:
        record, inputs = operations.get(operation), case.inputs()
        with enabled(patch):
            outputs = record.outputs(record.function(*inputs, strategy=BASELINE))
            gradients = torch.autograd.grad(outputs, inputs, case.cotangents(outputs))
        return tuple(output.detach() for output in outputs), record.defined(gradients)

    drawn = hard_cases("cpu", seed, (operation,))
    for cell in itertools.islice(judged_cells(drawn, [BASELINE], {patch: patched}), count):
        pytorch, of_patch = cell
        yield _ratio(pytorch), _ratio(of_patch)


def _ratio(measured: Measurement) -> float:
    found = measured.stability
    return WORST_RATIO if found is None else max(found.gradient, found.gradient_columns)
