"""Stability ratios of PyTorch's derivative and of a patch, in the same cases drawn to be hard."""

import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from strategies.measuring.case import Case
from strategies.measuring.measurement import Measurement
from strategies.measuring.stability import Tensors, judged_cells
from strategies.policy.schema import WORST_RATIO
from strategies.selection.draws import hard_cases
from upstream.patch import enabled


def certified_ratios(
    name: str, function: Callable[..., Tensor], seed: int, count: int
) -> Iterator[tuple[float, float]]:
    """The largest ratio of a gradient, by PyTorch and by a patch, in each case.

    `strategies.accuracy.stability` says what the ratio is. That of results does not count: they are
    PyTorch's in both. Where there is no gradient it is `WORST_RATIO`.

    Args:
        name: of the patch, and of the operation in `strategies.operations`.
        function: PyTorch's.
        seed: determines the cases.
        count: of the cases.
    """

    def computed(case: Case) -> tuple[Tensors, Tensors]:
        inputs = case.inputs()
        output = function(*inputs)
        return (output.detach(),), torch.autograd.grad(output, inputs, case.cotangents((output,)))

    def patched(case: Case) -> tuple[Tensors, Tensors]:
        with enabled(name):
            return computed(case)

    drawn = hard_cases("cpu", seed, (name,))
    cells = judged_cells(drawn, (), {"PyTorch": computed, "patch": patched})
    for pytorch, of_patch in itertools.islice(cells, count):
        yield _ratio(pytorch), _ratio(of_patch)


def _ratio(measured: Measurement) -> float:
    found = measured.stability
    return WORST_RATIO if found is None else max(found.gradient, found.gradient_columns)
