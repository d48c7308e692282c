"""The record of an operation: what the rest of the package needs to know of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from strategies.formulas.amplification import Amplification
from strategies.formulas.domains import GENERAL, Domain
from strategies.operations.grids import Cells

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

Shape = tuple[int, ...]


def exact(module: str) -> Any:
    """A module of `strategies.exact`, imported when it is used: it needs python-flint."""
    return importlib.import_module(f"strategies.exact.{module}")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation; everything that differs between operations is here.

    Attributes:
        name: in `torch.linalg` and in `strategies.linalg`.
        function: takes A, and B where it takes one, and `strategy=`; with the other arguments of the
            function of that name in `torch.linalg`.
        exact: the exact gradients of one matrix in ball arithmetic.
        exact_result: what it returns, its differentiable outputs, likewise; None where that depends on
            choices of the algorithm.
        cells: where it is measured, by grid.
        outputs: the differentiable outputs among what the function returns; by default all of it.
        output_shapes: their shapes, from those of the inputs; by default that of the last input.
        arity: 1 where it takes A, 2 where it takes A and B.
        square: it takes square matrices only.
        domain: the set of matrices that it takes, as Hermitian ones; gradients are compared within it.
        native: PyTorch's own, of the same inputs, where it is not that of this name in `torch.linalg`.
        takes_vectors: B may be a vector.
        truncates: singular values below a tolerance count as zero, and a strategy may refuse
            matrices of deficient rank.
        needs_full_rank: at deficient rank it has no gradient.
        falls_back: "auto" goes on to a strategy of any rank where the preferred one refuses a matrix.
        pivoted: the gradient depends on the order in which rows were pivoted.
        stem: what the names of a strategy's own methods for it begin with; by default its name.
        policy_operation: the operation whose measured cells also answer for it; by default itself.
        amplification: by how much rounding errors of the inputs are magnified in the gradient;
            None: by the condition number.
    """

    name: str
    function: Callable[..., Any]
    exact: Callable[[Problem], tuple[Matrix, ...]]
    cells: Cells
    exact_result: Callable[[Problem], tuple[Matrix, ...]] | None = None
    outputs: Callable[[Any], tuple[Tensor, ...]] = lambda result: (result,)
    output_shapes: Callable[..., list[Shape]] = lambda *inputs: [inputs[-1]]
    arity: int = 1
    square: bool = False
    domain: Domain = GENERAL
    native: Callable[..., Any] | None = None
    takes_vectors: bool = True
    truncates: bool = False
    needs_full_rank: bool = False
    falls_back: bool = False
    pivoted: bool = False
    stem: str = ""
    policy_operation: str = ""
    amplification: Amplification | None = None

    def __post_init__(self) -> None:
        for default in ("stem", "policy_operation"):
            if not getattr(self, default):
                object.__setattr__(self, default, self.name)

    def defined(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradient of A, projected on the domain of the operation, and that of B, as it is."""
        of_matrix, *rest = gradients
        return self.domain.part(of_matrix), *rest

    @property
    def of_torch(self) -> Callable[..., Any] | None:
        """PyTorch's own function of the same inputs; None where it has none."""
        return self.native or getattr(torch.linalg, self.name, None)
