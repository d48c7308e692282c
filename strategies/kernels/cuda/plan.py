"""The whole forward of a batch of small matrices on a CUDA device in one launch, its backward in another.

A plan is for inputs of given shapes, as `strategies.kernels.cpu.plans.Plan` is on the CPU. A forward waits
for the flag that its kernel raises where a matrix is no usual one; a backward waits for nothing.
"""

import functools
import importlib.util
import math
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from strategies.kernels.memory import materialized

Tensors = tuple[Tensor, ...]

LARGEST = 8
"""Rows and columns of a matrix. Kernels for larger ones take most of a minute to compile."""

OLDEST = (8, 0)
"""The compute capability of a device."""


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """What the two kernels of an operation read and write, said by functions of a plan.

    Attributes:
        name: of both.
        written: by that of the forward: as a rule the outputs, then what is kept.
        outcome: outputs and what is kept, of what is written, where it is not as a rule.
        read: by that of the backward, of the cotangent, saved outputs and what is kept.
        sides: of the matrices, as the kernels name them.
        numbers: what else that of the forward takes.
        arity: how many inputs there are.
        saved: positions of the outputs that `backward` is given.
        constant: positions of the outputs that are not differentiable.
        cotangents: positions of the outputs whose cotangents `backward` takes.
        optional, ignored, any_rank: as in `strategies.kernels.cpu.plans.Plan`; none are.
    """

    name: str
    written: Callable[[Any], Tensors]
    outcome: Callable[..., tuple[Tensors, Tensors]] | None = None
    read: Callable[..., Tensors]
    sides: Callable[[Any], tuple[int, ...]] = lambda plan: (plan.n,)
    numbers: Callable[[Any], tuple[float, ...]] = lambda _: ()
    arity: int = 1
    saved: tuple[int, ...] = (0,)
    constant: tuple[int, ...] = ()
    cotangents: tuple[int, ...] = (0,)
    optional: tuple[int, ...] = ()
    ignored: tuple[int, ...] = ()
    any_rank: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan(Kernels):
    """How to compute an operation of inputs of given shapes.

    Attributes:
        batch: the batch dimensions.
        m, n: rows and columns of A.
        rhs: sizes of B but for the batch; a vector has one.
    """

    device: torch.device
    dtype: torch.dtype
    batch: tuple[int, ...]
    m: int
    n: int
    rhs: tuple[int, ...]

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        """Outputs and what is kept; None if the kernel found that the inputs are not a usual case."""
        written, flag = self.written(self), torch.zeros((), dtype=torch.int32, device=self.device)
        self._launch("forward", inputs, (*written, flag), self.numbers(self))
        if flag.item():
            return None
        if self.outcome is not None:
            return self.outcome(*written)
        return written[: len(self.saved)], written[len(self.saved) :]

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of the inputs, from these, those outputs that `saved` names, and what is kept."""
        gradients = [self.empty(self.m, self.n), self.empty(*self.rhs)][: self.arity]
        self._launch("backward", self.read(*cotangents, *saved[self.arity :]), gradients)
        return gradients

    def zeros(self, _output: int) -> Tensor:
        """The cotangent of an output that has none."""
        return self.empty().zero_()

    def empty(self, *sides: int, dtype: torch.dtype | None = None) -> Tensor:
        size = (*self.batch, *sides)
        return torch.empty(size, dtype=dtype or self.dtype, device=self.device)

    def integers(self, count: int) -> Tensor:
        return self.empty(count, dtype=torch.int32)

    def _launch(
        self,
        direction: str,
        read: Sequence[Tensor],
        written: Sequence[Tensor],
        numbers: Sequence[float] = (),
    ) -> None:
        # Triton is optional, and takes a second to import.
        from strategies.kernels.cuda.launch import launch

        tensors = [*(materialized(each).contiguous() for each in read), *written]
        kernel, count = f"{direction}.{self.name}", math.prod(self.batch)
        launch(kernel, tensors, count, self.sides(self), numbers)


_LU = Kernels(
    name="lu",
    written=lambda p: (p.empty(p.m, p.n), p.integers(min(p.m, p.n)), p.integers(p.m)),
    read=lambda cotangent, LU, _pivots, positions: (LU, positions, cotangent),
    sides=lambda p: (p.m, p.n),
    # As in `some_pivot_may_be_roundoff` of `csrc/include/roundoff.hpp`.
    numbers=lambda p: (max(1.0, math.sqrt(abs(p.m - p.n) + 1) / 2),),
    saved=(0, 1),
    constant=(1,),
)
_SOLVE = Kernels(
    name="solve",
    written=lambda p: (p.empty(*p.rhs), p.empty(p.n, p.n), p.integers(p.n)),
    read=lambda cotangent, X, LU, orders: (LU, orders, X, cotangent),
    sides=lambda p: (p.n, math.prod(p.rhs[1:])),
    arity=2,
)
_INV = Kernels(
    name="inv",
    written=lambda p: (p.empty(p.n, p.n),),
    read=lambda cotangent, result: (result, cotangent),
)
_DET = Kernels(
    name="det",
    written=lambda p: (p.empty(), p.empty(), p.empty(p.n, p.n), p.integers(p.n)),
    outcome=lambda det, _logarithm, *factors: ((det,), factors),
    read=lambda cotangent, det, LU, orders: (LU, orders, cotangent * det),
    # How far from one the numbers may be, which are multiplied with a cotangent.
    numbers=lambda p: (2.0**52 if p.dtype == torch.float32 else 2.0**120,),
)

_PROGRAMS = {
    "lu_factor": _LU,
    "solve": _SOLVE,
    "inv": _INV,
    "cholesky": replace(_INV, name="cholesky"),
    "det": _DET,
    "slogdet": replace(
        _DET,
        outcome=lambda det, logarithm, *factors: ((det.sign(), logarithm), factors),
        read=lambda cotangent, _sign, LU, orders: (LU, orders, cotangent),
        numbers=lambda _: (2.0**120,),
        constant=(0,),
        cotangents=(1,),
    ),
}


def plan(
    operation: str, device: torch.device, dtype: torch.dtype, *inputs: Sequence[int]
) -> Plan | None:
    """How to compute an operation of such shapes on a CUDA device, if there are kernels for it."""
    *batch, m, n = inputs[0]
    rhs = tuple(inputs[1][len(batch) :]) if len(inputs) > 1 else (m,)
    if not (
        operation in _PROGRAMS
        and dtype in (torch.float32, torch.float64)
        and all(0 < side <= LARGEST for side in (m, n, *rhs))
        and math.prod(batch) > 0
        and (operation == "lu_factor" or m == n)
        and (len(inputs) == 1 or list(inputs[1][: len(batch) + 1]) == [*batch, m])
        and len(rhs) in (1, 2)
        and _runs_on(device)
    ):
        return None
    of = vars(_PROGRAMS[operation])
    return Plan(**of, device=device, dtype=dtype, batch=tuple(batch), m=m, n=n, rhs=rhs)


@functools.cache
def _runs_on(device: torch.device) -> bool:
    """Whether there is Triton, the compiler of C that it asks for, and a device that is new enough."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if importlib.util.find_spec("triton") is None or compiler is None:
        return False
    # Where there is no CUDA device, Triton's interpreter takes tensors of the CPU.
    if device.type != "cuda" or not torch.cuda.is_available():
        return True
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= OLDEST
