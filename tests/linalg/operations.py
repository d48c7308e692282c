"""The operations under test, each as a function of float tensors only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import strategies
from strategies import linalg

STRATEGIES = [name for name in strategies.available() if name != "native"]
ANY_RANK = [name for name in STRATEGIES if not strategies.get(name).requires_full_rank]
DTYPES = [torch.float64, torch.complex128]


@dataclass(frozen=True)
class Operation:
    name: str
    call: Callable[..., object]
    reference: Callable[..., object]
    is_square: bool = False
    has_rhs: bool = False

    def strategies(self) -> list[str]:
        """The strategies whose code for this operation is not another's, which they inherit."""
        return [name for name in strategies.registry.distinct(self.name) if name in STRATEGIES]

    def marks(self, strategy: str) -> list[pytest.MarkDecorator]:
        """What a test of every strategy is marked with: slow where the code is not its own."""
        return [] if strategy in self.strategies() else [pytest.mark.slow]

    def function(self, strategy: str) -> Callable[..., object]:
        return lambda *inputs: self.call(*inputs, strategy=strategy)

    def inputs(
        self, shape: tuple[int, int], batch: tuple[int, ...], dtype: torch.dtype, seed: int = 0
    ) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        m, n = shape
        A = torch.randn(*batch, m, n, dtype=dtype, generator=generator)
        # Away from singular matrices, where finite differences measure nothing.
        A = A + 2 * torch.eye(m, n, dtype=dtype)
        if not self.has_rhs:
            return (A.requires_grad_(),)
        B = torch.randn(*batch, m, 2, dtype=dtype, generator=generator)
        return A.requires_grad_(), B.requires_grad_()

    def __str__(self) -> str:
        return self.name


def _differentiable(slogdet: tuple[Tensor, Tensor]) -> object:
    """The sign of a real determinant is locally constant and has no gradient."""
    sign, logabsdet = slogdet
    return (sign, logabsdet) if sign.is_complex() else logabsdet


OPERATIONS = [
    Operation("lu", lambda A, **s: linalg.lu(A, **s)[1:], lambda A: torch.linalg.lu(A)[1:]),
    Operation(
        "lu_factor",
        lambda A, **s: linalg.lu_factor(A, **s).LU,
        lambda A: torch.linalg.lu_factor(A).LU,
    ),
    Operation("pinv", linalg.pinv, torch.linalg.pinv),
    Operation(
        "lstsq",
        lambda A, B, **s: linalg.lstsq(A, B, **s).solution,
        lambda A, B: torch.linalg.lstsq(A, B).solution,
        has_rhs=True,
    ),
    Operation("solve", linalg.solve, torch.linalg.solve, is_square=True, has_rhs=True),
    Operation("inv", linalg.inv, torch.linalg.inv, is_square=True),
    Operation("det", linalg.det, torch.linalg.det, is_square=True),
    Operation(
        "slogdet",
        lambda A, **s: _differentiable(linalg.slogdet(A, **s)),
        lambda A: _differentiable(torch.linalg.slogdet(A)),
        is_square=True,
    ),
]


def shapes_of(operation: Operation) -> list[tuple[int, int]]:
    square = [(0, 0), (1, 1), (2, 2)]
    return square if operation.is_square else [*square, (3, 2), (2, 3)]
