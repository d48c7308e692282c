"""`lstsq`, least squares of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from strategies import grids
from strategies.amplification import lstsq_amplification
from strategies.autograd.choice import (
    StrategyChoice,
    choose,
    first_that_can,
    require_float_matrix,
    require_same_kind,
)
from strategies.autograd.nodes import run
from strategies.autograd.rule import Gradients, Rule, Tensors
from strategies.errors import UnsupportedError, raise_if_not_finite
from strategies.factors import Dense
from strategies.formulas import lstsq as formula
from strategies.interface import Saved, Strategy, Tolerance
from strategies.operations.pinv import pinv
from strategies.operations.record import Operation, Shape
from strategies.policy import BASELINE
from strategies.pseudo_inverse import PseudoInverse

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["LstsqResult", "lstsq"]


class LstsqResult(NamedTuple):
    """What `lstsq` returns; the fields of `torch.linalg.lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _forward(
    strategy: Strategy, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
) -> tuple[Tensor, PseudoInverse]:
    inverse = strategy.factor(matrix, rtol=rtol)
    return inverse.apply(rhs), inverse


def _backward(
    _: Strategy, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
) -> Gradients:
    return formula.backward(
        saved.inverse, saved.matrix, saved.rhs, saved.result, cotangent, need_matrix=need_matrix
    )


@dataclass(frozen=True)
class _Lstsq(Rule):
    """Outputs: solution, rank, singular values (empty where not computed), whether residuals exist.

    The last by a shape, which, unlike a value, can be asked for under `vmap`.
    """

    name = "lstsq"
    arity = 2

    rcond: float | None = None

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        A, B = inputs
        X, inverse = strategy.own("lstsq_forward", _forward, A, B, rtol=self.rcond)
        m, n = A.shape[-2:]
        has_residuals = A.new_empty(*A.shape[:-2], int(m > n and inverse.full_column_rank))
        values = _singular_values(inverse, A)
        raise_if_not_finite(X, A)
        return (X, inverse.rank, values, has_residuals), inverse

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        return strategy.own("lstsq_backward", _backward, saved, *cotangents, need_matrix=needed[0])

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        inverse = self._inverse(at.matrix, strategy)
        (G,) = cotangents
        matrix, rhs = formula.backward(inverse, at.matrix, at.rhs, at.result, G)
        assert matrix is not None
        return matrix, rhs

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        inverse = self._inverse(at.matrix, strategy)
        dA, dB = tangents
        return (formula.jvp(inverse, at.matrix, at.rhs, at.result, dA, dB),)

    def _inverse(self, A: Tensor, strategy: Strategy) -> PseudoInverse:
        return Dense.of_any_rank(A, pinv(A, rtol=self.rcond, strategy=strategy))


def _singular_values(inverse: PseudoInverse, like: Tensor) -> Tensor:
    if inverse.singular_values is None:
        return like.new_empty((*like.shape[:-2], 0), dtype=like.dtype.to_real())
    return inverse.singular_values


def lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    strategy: StrategyChoice = "auto",
) -> LstsqResult:
    """The X of least norm that minimizes ‖A X − B‖_F, differentiable at constant rank.

    As `torch.linalg.lstsq`. `rank` is always filled; `singular_values` where the strategy computes
    them; `residuals` where m > n and every A has full rank, and they are differentiable.

    Args:
        A: (..., m, n).
        B: (..., m, k), or (..., m) with the batch shape of A.
        rcond: singular values up to rcond·σ₁ count as zero; None: max(m, n)·ε.
        driver: LAPACK's drivers are PyTorch's own: "native" alone takes one, and "auto" becomes it.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        solution (..., n, k), residuals (..., k), rank (...), singular_values (..., min(m, n)); what
        was not computed has no elements.

    Raises:
        torch.linalg.LinAlgError: A is rank-deficient and the strategy needs full rank.
        RuntimeError: shapes or dtypes do not fit together.
        UnsupportedError: a driver was asked for and the strategy is not PyTorch's own.

    Example:
        >>> A = torch.tensor([[3.0], [4.0]], requires_grad=True)
        >>> X = lstsq(A, torch.tensor([[6.0], [8.0]]), strategy="qr_pinv").solution
        >>> X.round(decimals=4).tolist()
        [[2.0]]
    """
    if driver is not None and strategy == "auto":
        strategy = BASELINE
    candidates = choose(strategy, "lstsq", A, B, any_rank=True)
    return first_that_can(candidates, lambda chosen: _lstsq(chosen, A, B, rcond, driver))


def _lstsq(
    chosen: Strategy, A: Tensor, B: Tensor, rcond: float | None, driver: str | None
) -> LstsqResult:
    if chosen.forward_is_differentiable:
        return LstsqResult(*torch.linalg.lstsq(A, B, rcond=rcond, driver=driver))
    if driver is not None:
        raise UnsupportedError(
            f"linalg.lstsq: strategy '{chosen.name}' has no LAPACK drivers; "
            f"driver='{driver}' needs strategy='native'"
        )
    require_float_matrix("lstsq", A)
    _require_matching(A, B)
    is_vector = B.ndim == A.ndim - 1
    rhs = B.unsqueeze(-1) if is_vector else B
    X, rank, singular_values, has_residuals = run(_Lstsq(rcond), chosen, A, rhs)
    residuals = X.new_empty(0, dtype=X.dtype.to_real())
    if has_residuals.shape[-1]:
        residuals = (rhs - A @ X).abs().square().sum(-2)
    if is_vector:
        X = X.squeeze(-1)
    if singular_values.numel() == 0:
        singular_values = singular_values.new_empty(0)
    return LstsqResult(X, residuals, rank, singular_values)


def _require_matching(A: Tensor, B: Tensor) -> None:
    require_same_kind("lstsq", A, B)
    is_vector = B.ndim == A.ndim - 1
    fits = B.shape == A.shape[:-1] if is_vector else B.shape[:-1] == A.shape[:-1]
    if not fits or B.ndim < A.ndim - 1:
        raise RuntimeError(
            f"linalg.lstsq: B must be (..., m, k) or (..., m) with the batch shape and the m of A: "
            f"A is {tuple(A.shape)}, B is {tuple(B.shape)}"
        )


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.pinv import lstsq_gradient

    matrix, rhs, cotangent = problem.operands
    return lstsq_gradient(matrix, rhs, cotangent, problem.profile)


def _output_shapes(matrix: Shape, rhs: Shape) -> list[Shape]:
    *batch, _, n = matrix
    return [(*batch, n, *rhs[len(batch) + 1 :])]


RECORDS = (
    Operation(
        name="lstsq",
        function=lstsq,
        outputs=lambda result: (result.solution,),
        output_shapes=_output_shapes,
        exact=_exact,
        cells=grids.LSTSQ,
        arity=2,
        truncates=True,
        amplification=lstsq_amplification,
    ),
)
