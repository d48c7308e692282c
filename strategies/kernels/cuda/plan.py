"""The whole forward of a batch of small matrices on a CUDA device in one launch, its backward in another.

A plan is for inputs of given shapes, as `strategies.kernels.cpu.plans.Plan` is on the CPU. A forward waits
for the flag that its program raises where a matrix is no usual one; a backward waits for nothing.
"""

import functools
import importlib.util
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strategies.kernels.memory import materialized

Tensors = tuple[Tensor, ...]

LARGEST = 8
"""Rows and columns of a matrix. Programs for larger ones take most of a minute to compile."""

OLDEST = (8, 0)
"""The compute capability of a device."""


@dataclass(frozen=True)
class Plan(ABC):
    """How to compute an operation of inputs of given shapes.

    Attributes:
        batch: the batch dimensions.
        m, n: rows and columns of A.
        rhs: sizes of B but for the batch; a vector has one.
        arity: how many inputs there are.
        saved: positions of the outputs that `backward` is given.
        constant: positions of the outputs that are not differentiable.
        cotangents: positions of the outputs whose cotangents `backward` takes.
        optional, ignored: as in `strategies.kernels.cpu.plans.Plan`; none are.
    """

    arity: ClassVar[int] = 1
    saved: ClassVar[tuple[int, ...]] = (0,)
    constant: ClassVar[tuple[int, ...]] = ()
    cotangents: ClassVar[tuple[int, ...]] = (0,)
    optional: ClassVar[tuple[int, ...]] = ()
    ignored: ClassVar[tuple[int, ...]] = ()

    device: torch.device
    dtype: torch.dtype
    batch: tuple[int, ...]
    m: int
    n: int
    rhs: tuple[int, ...]

    @abstractmethod
    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        """Outputs and what is kept; None if the inputs are not a usual case."""

    @abstractmethod
    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of the inputs, from these, those outputs that `saved` names, and what is kept."""

    def zeros(self, _output: int) -> Tensor:
        """The cotangent of an output that has none."""
        return self._empty().zero_()

    def _empty(self, *sides: int, dtype: torch.dtype | None = None) -> Tensor:
        size = (*self.batch, *sides)
        return torch.empty(size, dtype=dtype or self.dtype, device=self.device)

    def _integers(self, count: int) -> Tensor:
        return self._empty(count, dtype=torch.int32)

    def _is_usual(
        self,
        program: str,
        inputs: Sequence[Tensor],
        results: Sequence[Tensor],
        sides: tuple[int, ...],
        *numbers: float,
    ) -> bool:
        """Whether a program of a forward found nothing unusual."""
        flag = torch.zeros((), dtype=torch.int32, device=self.device)
        self._launch(f"forward.{program}", inputs, [*results, flag], sides, *numbers)
        return not flag.item()

    def _launch(
        self,
        program: str,
        read: Sequence[Tensor],
        written: Sequence[Tensor],
        sides: tuple[int, ...],
        *numbers: float,
    ) -> None:
        # Triton is optional, and takes a second to import.
        from strategies.kernels.cuda.launch import launch

        contiguous = [materialized(each).contiguous() for each in read]
        launch(program, [*contiguous, *written], math.prod(self.batch), sides, numbers)


class _LU(Plan):
    saved = (0, 1)
    constant = (1,)

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        m, n = self.m, self.n
        tensors = [self._empty(m, n), self._integers(min(m, n)), self._integers(m)]
        # As in `some_pivot_may_be_roundoff` of `csrc/include/roundoff.hpp`.
        safety = max(1.0, math.sqrt(abs(m - n) + 1) / 2)
        if not self._is_usual("lu", inputs, tensors, (m, n), safety):
            return None
        LU, pivots, positions = tensors
        return (LU, pivots), (positions,)

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        _, LU, _, positions = saved
        gradient = self._empty(self.m, self.n)
        read = LU, positions, *cotangents
        self._launch("backward.lu", read, [gradient], (self.m, self.n))
        return [gradient]


class _Solve(Plan):
    arity = 2

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        n = self.n
        X, LU, orders = self._empty(*self.rhs), self._empty(n, n), self._integers(n)
        if not self._is_usual("solve", inputs, [X, LU, orders], self._sides):
            return None
        return (X,), (LU, orders)

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        *_, X, LU, orders = saved
        gradients = [self._empty(self.n, self.n), self._empty(*self.rhs)]
        read = LU, orders, X, *cotangents
        self._launch("backward.solve", read, gradients, self._sides)
        return gradients

    @property
    def _sides(self) -> tuple[int, int]:
        return self.n, math.prod(self.rhs[1:])


class _ByResult(Plan):
    """The backward reads the result alone.

    Attributes:
        program: the name of both programs.
    """

    program: ClassVar[str]

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        result = self._empty(self.n, self.n)
        is_usual = self._is_usual(self.program, inputs, [result], (self.n,))
        return ((result,), ()) if is_usual else None

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        gradient = self._empty(self.n, self.n)
        read = saved[-1], *cotangents
        self._launch(f"backward.{self.program}", read, [gradient], (self.n,))
        return [gradient]


class _Inv(_ByResult):
    program = "inv"


class _Cholesky(_ByResult):
    program = "cholesky"


class _Det(Plan):
    # Of numbers that are multiplied with a cotangent.
    _far: ClassVar[Mapping[torch.dtype, float]] = {torch.float32: 2.0**52, torch.float64: 2.0**120}

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        result, logarithm = self._empty(), self._empty()
        LU, orders = self._empty(self.n, self.n), self._integers(self.n)
        results = [result, logarithm, LU, orders]
        if not self._is_usual("det", inputs, results, (self.n,), self._far[self.dtype]):
            return None
        return self._outputs(result, logarithm), (LU, orders)

    def _outputs(self, result: Tensor, _logarithm: Tensor) -> Tensors:
        return (result,)

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        _, det, LU, orders = saved
        return [self._multiple(cotangents[0] * det, LU, orders)]

    def _multiple(self, scale: Tensor, LU: Tensor, orders: Tensor) -> Tensor:
        """So many times A⁻ᵀ."""
        gradient = self._empty(self.n, self.n)
        self._launch("backward.det", (LU, orders, scale), [gradient], (self.n,))
        return gradient


class _Slogdet(_Det):
    _far = dict.fromkeys(_Det._far, 2.0**120)
    constant = (0,)
    cotangents = (1,)

    def _outputs(self, result: Tensor, logarithm: Tensor) -> Tensors:
        return result.sign(), logarithm

    def backward(self, saved: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
        *_, LU, orders = saved
        return [self._multiple(cotangents[0], LU, orders)]


_PLANS: dict[str, type[Plan]] = {
    "lu_factor": _LU,
    "solve": _Solve,
    "inv": _Inv,
    "det": _Det,
    "slogdet": _Slogdet,
    "cholesky": _Cholesky,
}


def plan(
    operation: str, device: torch.device, dtype: torch.dtype, *inputs: Sequence[int]
) -> Plan | None:
    """How to compute an operation of such shapes on a CUDA device, if there are programs for it."""
    *batch, m, n = inputs[0]
    rhs = tuple(inputs[1][len(batch) :]) if len(inputs) > 1 else (m,)
    if not (
        operation in _PLANS
        and dtype in (torch.float32, torch.float64)
        and all(0 < side <= LARGEST for side in (m, n, *rhs))
        and math.prod(batch) > 0
        and (operation == "lu_factor" or m == n)
        and (len(inputs) == 1 or list(inputs[1][: len(batch) + 1]) == [*batch, m])
        and len(rhs) in (1, 2)
        and _runs_on(device)
    ):
        return None
    return _PLANS[operation](device, dtype, tuple(batch), m, n, rhs)


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
