"""Compile the kernels ahead of calls."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import torch

from strategies.kernels import extension
from strategies.kernels.cpu import compilation
from strategies.kernels.cpu.kernel import DTYPES, IS_COMPILED
from strategies.kernels.cpu.lanes import FEW_ROWS

__all__ = ["warmup"]

Progress = Callable[[int, int], None]

_Loop = tuple[str, torch.dtype]

_OF_INTEGERS = {"inspection.inverse_order"}
"""Loops that read no numbers: `CPUKernel` calls them for float64, whatever the matrices are of."""

_OF_REAL = {"fused_backward.slogdet", "tiny_det.slogdet_backward"}
_OF_COMPLEX = {f"{loop}_of_complex" for loop in _OF_REAL}
"""Loops that are called for real, and for complex matrices only."""

_WORTH_A_PROCESS = 8
"""Loops that take as long to compile as a process takes to start."""


def warmup(
    dtypes: Sequence[torch.dtype] = DTYPES, *, progress: Progress | None = None
) -> list[str]:
    """Compile all kernels for the CPU, or load those that are kept, so that no call waits for one.

    As many processes compile as torch uses threads. The code goes to the user's cache folder, or
    `$BACKWARD_STRATEGIES_CACHE`. Where there is a C++ compiler, the fast lane of small matrices is built,
    too; calls before that keep the one in Python.

    Args:
        dtypes: of the matrices; by default all four.
        progress: is called with two numbers, the steps that are done and all of them: at the beginning,
            and after each kernel that is compiled, and the lane. It is not called if all are kept.

    Returns:
        What was not kept and has been compiled: names of kernels with a dtype, and of the lane.

    Raises:
        ValueError: a dtype is none of the four.

    Example:
        >>> import strategies
        >>> strategies.warmup([])
        []
    """
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"kernels take {', '.join(map(str, DTYPES))}, not {dtype}")
    loops = list(_loops(dtypes)) if IS_COMPILED else []
    missing = [loop for loop in loops if not compilation.is_kept(*loop)]
    lanes = [extension.NAME] if loops and extension.load() is None else []
    steps = len(missing) + len(lanes)

    def show(done: int) -> None:
        if progress and steps:
            progress(done, steps)

    show(0)
    for done, _ in enumerate(_compiled(loops, missing), start=1):
        show(done)
    built = [name for name in lanes if extension.build()]
    if lanes:
        show(steps)
    return [*map(_told, missing), *built]


def _loops(dtypes: Sequence[torch.dtype]) -> Iterator[_Loop]:
    """All that `compilation.entry` may be asked for: dtype by dtype, and in each module by module."""
    from strategies.kernels.cpu import blas, loops

    names: list[str] = []
    for found in pkgutil.iter_modules(loops.__path__):
        module = importlib.import_module(f"{loops.__name__}.{found.name}")
        of_blas = (getattr(blas, name) for name in blas.__all__)
        if not blas.IS_AVAILABLE and any(each in vars(module).values() for each in of_blas):
            continue
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            parameters, loop = [*inspect.signature(function).parameters], f"{found.name}.{name}"
            if parameters == ["task"]:
                names.append(loop)
            elif parameters == ["task", "n"]:
                names += (f"{loop}-{n}" for n in FEW_ROWS[loop.partition("_backward")[0]])
    for dtype in dtypes:
        others = _OF_INTEGERS | (_OF_REAL if dtype.is_complex else _OF_COMPLEX)
        yield from ((name, dtype) for name in names if name.partition("-")[0] not in others)
    if dtypes:
        yield from ((name, torch.float64) for name in _OF_INTEGERS)


def _compiled(loops: Sequence[_Loop], missing: Sequence[_Loop]) -> Iterator[_Loop]:
    """Each of the missing loops when it is compiled; in the end all loops are loaded in this process."""
    waiting = {_told(loop): loop for loop in missing}
    for told in _compiled_in_processes(missing):
        if told in waiting:
            yield waiting.pop(told)
    for loop in loops:
        compilation.entry(*loop)
        if _told(loop) in waiting:
            yield loop


def _compiled_in_processes(loops: Sequence[_Loop]) -> Iterator[str]:
    """The name of each loop when its code is in the user's folder; those that fail are left out.

    Neighbours share parts, which a process compiles once: each gets a stretch.
    """
    count = min(torch.get_num_threads(), len(loops) // _WORTH_A_PROCESS)
    if count < 2:
        return
    ends = [len(loops) * i // count for i in range(count + 1)]
    command = [sys.executable, "-c", f"from {__name__} import _compile; _compile()"]
    # One pipe for all: short lines are written as wholes, and it ends when the last process does.
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as lines:
        processes = [
            subprocess.Popen(
                [*command, *map(_told, loops[a:b])], stdout=write, stderr=subprocess.DEVNULL
            )
            for a, b in itertools.pairwise(ends)
        ]
        os.close(write)
        for line in lines:
            yield line.rstrip("\n")
    for process in processes:
        process.wait()


def _told(loop: _Loop) -> str:
    name, dtype = loop
    return f"{name} {str(dtype).removeprefix('torch.')}"


def _compile() -> None:
    """The loops that the arguments of the process tell; each is printed when it is done."""
    for argument in sys.argv[1:]:
        name, dtype = argument.split()
        compilation.entry(name, getattr(torch, dtype))
        print(argument, flush=True)
