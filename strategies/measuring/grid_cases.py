"""The cases of a grid, over all operations that have measured cells of their own."""

import itertools
from collections.abc import Iterator, Sequence

import torch

from strategies import operations, registry
from strategies.accuracy.gallery import WELL_POSED
from strategies.measuring.case import Case
from strategies.measuring.workload import is_affordable
from strategies.operations.grids import GRIDS, Block, Blocks

_LARGEST_WORK_ON_CUDA = 2**39


def timed(grid: str, devices: Sequence[str] | None = None) -> list[Case]:
    """The cases of a grid whose times are compared, on the devices that are here or on these."""
    return [
        case
        for blocks, case in _cases(grid, devices, "single", "batched")
        # The baseline, which comes first, asks the device how much memory it has; others need less.
        if any(fits(case, blocks, strategy) for strategy in reversed(registry.available()))
    ]


def judged(grid: str, devices: Sequence[str] | None = None) -> list[Case]:
    """The cases of a grid at which errors alone are compared."""
    return [case for _, case in _cases(grid, devices, "conditioned", "sized", "gallery")]


def fits(case: Case, blocks: Blocks, strategy: str) -> bool:
    """Whether a strategy is to run a case of a grid: it is not too much work, nor memory."""
    work = case.work * (4 if case.dtype.is_complex else 1)
    most = blocks.largest_work if case.device == "cpu" else _LARGEST_WORK_ON_CUDA
    return work <= most and is_affordable(case, strategy)


def parameters(
    block: Block, devices: Sequence[str] | None = None
) -> tuple[list[str], list[int], list[str], list[str]]:
    """The shapes, batches, dtypes and devices of a block, of which `case_of` makes cases.

    Unless devices are given, those that are here are found without starting CUDA: asv forks after this.
    """
    if devices is None:
        devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    shapes, batches = block.shapes.split(", "), list(block.batches)
    if any(device != "cpu" for device in devices):
        shapes += block.cuda_shapes.split(", ") if block.cuda_shapes else []
        batches += block.cuda_batches
    named = [
        shape.replace("well_posed", name)
        for shape in shapes
        for name in (WELL_POSED if "well_posed" in shape else [""])
    ]
    return named, batches, list(block.dtypes), list(devices)


def case_of(
    operation: str, shape: str, batch: int, dtype: str, device: str, log10_cond: int | None = None
) -> Case:
    """The case that a combination of `parameters` stands for."""
    sizes = f"{batch}x{shape}" if batch else shape
    condition = "" if log10_cond is None else f"cond=1e{log10_cond}"
    return Case.parse(f"{operation} {sizes} {condition} {dtype} {device}")


def _cases(grid: str, devices: Sequence[str] | None, *kinds: str) -> Iterator[tuple[Blocks, Case]]:
    if grid not in GRIDS:
        raise ValueError(f"no grid is named {grid!r}; there is {', '.join(GRIDS)}")
    for name in operations.measured():
        blocks = operations.get(name).cells[grid]
        for block in (getattr(blocks, kind) for kind in kinds):
            for combination in itertools.product(*parameters(block, devices), block.log10_conds):
                yield blocks, case_of(name, *combination)
