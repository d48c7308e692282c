"""`solve`, square systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from strategies import grids
from strategies.autograd.choice import (
    StrategyChoice,
    choose,
    require_float_matrix,
    require_same_kind,
)
from strategies.autograd.nodes import run
from strategies.autograd.rule import Gradients, Rule, Tensors
from strategies.formulas import solve as formula
from strategies.interface import Saved, Strategy
from strategies.operations.record import Operation
from strategies.pseudo_inverse import PseudoInverse

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["solve"]


def _forward(strategy: Strategy, matrix: Tensor, rhs: Tensor) -> tuple[Tensor, PseudoInverse]:
    inverse = strategy.factor_square(matrix)
    return inverse.apply(rhs), inverse


def _backward(
    _: Strategy, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
) -> Gradients:
    return formula.backward(saved.inverse, saved.result, cotangent, need_matrix=need_matrix)


@dataclass(frozen=True)
class _Solve(Rule):
    name = "solve"
    arity = 2

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        X, inverse = strategy.own("solve_forward", _forward, *inputs)
        return (X,), inverse

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        return strategy.own("solve_backward", _backward, saved, *cotangents, need_matrix=needed[0])

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        rhs_gradient = torch.linalg.solve(at.matrix.mH, cotangents[0])
        return -rhs_gradient @ at.result.mH, rhs_gradient

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        return (torch.linalg.solve(at.matrix, formula.rhs_tangent(at.result, *tangents)),)


def solve(A: Tensor, B: Tensor, *, left: bool = True, strategy: StrategyChoice = "auto") -> Tensor:
    """The X with A X = B, or X A = B where `left` is False; A square and nonsingular.

    As `torch.linalg.solve`, its rules of broadcasting included: B is a batch of vectors where it is
    one-dimensional, or has one dimension less than A and the shape A.shape[:-1].

    Args:
        A: (..., n, n).
        B: (..., n, k), (..., n) or (n,); (..., k, n) where `left` is False.
        left: on which side of X the matrix stands.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        X, of the broadcast shape of B.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular.
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> solve(torch.tensor([[2.0]]), torch.tensor([4.0]), strategy="triangular_solve")
        tensor([2.])
    """
    (chosen,) = choose(strategy, "solve", A, B)
    if chosen.forward_is_differentiable:
        return torch.linalg.solve(A, B, left=left)
    require_float_matrix("solve", A, square=True)
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    rhs = B.unsqueeze(-1) if is_vector else B
    _require_matching(A, B, rhs, left=left or is_vector, is_vector=is_vector, asked_left=left)
    if not left:
        return solve(A.mT, rhs.mT, strategy=chosen).mT
    X = _solve_broadcast(chosen, A, rhs)
    return X.squeeze(-1) if is_vector else X


def _solve_broadcast(strategy: Strategy, A: Tensor, B: Tensor) -> Tensor:
    if A.shape[:-2] == B.shape[:-2]:
        return run(_Solve(), strategy, A, B)[0]
    n, k = B.shape[-2:]
    batch = torch.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    if A.ndim > 2:
        A, B = A.expand(*batch, n, n), B.expand(*batch, n, k)
        return run(_Solve(), strategy, A, B)[0]
    # One matrix for a batch of right-hand sides: all their columns at once.
    columns = B.movedim(-2, 0).reshape(n, -1)
    X = run(_Solve(), strategy, A, columns)[0]
    return X.reshape(n, *batch, k).movedim(0, -2)


def _require_matching(
    A: Tensor, B: Tensor, rhs: Tensor, *, left: bool, is_vector: bool, asked_left: bool
) -> None:
    require_same_kind("solve", A, B)
    if is_vector and not asked_left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if rhs.ndim < 2 or rhs.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{'x'.join(map(str, rhs.shape[-2:]))})"
        )


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.square import solve_gradient

    return solve_gradient(*problem.operands)


RECORDS = (
    Operation(
        name="solve",
        function=solve,
        exact=_exact,
        cells=grids.SOLVE,
        arity=2,
        square=True,
        needs_full_rank=True,
    ),
)
