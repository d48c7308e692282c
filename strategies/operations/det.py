"""`det` and `slogdet`, through LU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from strategies import grids
from strategies.autograd.choice import StrategyChoice, choose, require_float_matrix
from strategies.autograd.nodes import run
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import raise_if_singular
from strategies.factors import PackedLU
from strategies.factors.canonical_lu import rest_is_roundoff
from strategies.factors.determinant import determinant
from strategies.factors.pivots import inverse_order
from strategies.formulas import bordered_det
from strategies.formulas import det as formula
from strategies.interface import Saved, Strategy
from strategies.operations.record import Operation

if TYPE_CHECKING:
    from strategies.exact.balls import Matrix
    from strategies.exact.problem import Problem

__all__ = ["SlogdetResult", "det", "slogdet"]


class SlogdetResult(NamedTuple):
    """What `slogdet` returns; the fields of `torch.linalg.slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def _backward(strategy: Strategy, factors: PackedLU, scale: Tensor) -> Tensor:
    inverse_adjoint = formula.inverse_adjoint(strategy.factor_triangular, *factors)
    return scale[..., None, None] * inverse_adjoint


@dataclass(frozen=True)
class _Det(Rule):
    """Outputs: det, packed LU, inverse row order, and three more of matrices near singular.

    The columns of negligible pivots, as many in each matrix as in that of the batch which has most.
    The determinant of LU, whose zero pivots have been raised, (..., 1); or (..., 0) where there were
    none. Whether the adjugate is zero, (..., 1); or (..., 0) where it nowhere is. What there is to
    do is thus told by shapes, which are known wherever the explicit form is traced.
    """

    name = "det"

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, pivots, _ = torch.linalg.lu_factor_ex(inputs[0])
        det, most, order = determinant(LU, pivots)
        columns = order.new_empty(*det.shape, 0)
        raised, is_zero = det.new_empty(*det.shape, 0), det.new_empty(*det.shape, 0)
        if most > 1:
            # From corank 2 on the adjugate is zero, and what the factors say of it is roundoff.
            vanishes = rest_is_roundoff(LU, LU.shape[-1] - 2)
            if bool(vanishes.any()):
                is_zero = vanishes.unsqueeze(-1)
        if most:
            columns = LU.diagonal(dim1=-2, dim2=-1).abs().topk(most, largest=False).indices
            nonzero = formula.without_zero_pivots(LU)
            if nonzero is not LU:
                LU, raised = nonzero, formula.determinant(nonzero, pivots).unsqueeze(-1)
        return (det, LU, order, columns, raised, is_zero), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        det, LU, order, _, raised, is_zero = saved.outputs
        of_factors = raised.squeeze(-1) if raised.shape[-1] else det
        scale = cotangents[0] * of_factors.conj()
        gradient = strategy.own("det_backward", _backward, PackedLU(LU, order), scale)
        if is_zero.shape[-1]:
            gradient = gradient.masked_fill(is_zero.unsqueeze(-1), 0)
        return (gradient,)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        _, LU, order, columns, _, _ = at.outputs
        N, M = bordered_det.border(LU, order, columns)
        pullback = torch.func.vjp(lambda A: bordered_det.determinant(A, N, M), *at.inputs)[1]
        gradients: Tensors = pullback(*cotangents)
        return gradients

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        (gradient,) = self.explicit_backward(strategy, at, (torch.ones_like(at.result),))
        return ((gradient.conj() * only(tangents)).sum((-2, -1)),)


@dataclass(frozen=True)
class _Slogdet(Rule):
    """Outputs: sign, log|det|, packed LU, inverse row order."""

    name = "slogdet"
    differentiable = 2

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, pivots, _ = torch.linalg.lu_factor_ex(inputs[0])
        sign, logabsdet = formula.slogdet(LU, pivots)
        return (sign, logabsdet, LU, inverse_order(pivots, LU.shape[-1])), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        sign, _, LU, order = saved.outputs
        raise_if_singular(sign == 0, strategy.name, "log|det| has no gradient there; det has")
        scale = formula.slogdet_scale(sign, *cotangents)
        return (strategy.own("det_backward", _backward, PackedLU(LU, order), scale),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        scale = formula.slogdet_scale(at.result, *cotangents)
        return (scale[..., None, None] * torch.linalg.inv(at.matrix).mH,)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        sign = at.result
        trace = (torch.linalg.inv(at.matrix).mT * only(tangents)).sum((-2, -1))
        if not sign.is_complex():
            return torch.zeros_like(sign), trace
        return 1j * trace.imag * sign, trace.real


def det(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """The determinant of each matrix of a batch.

    As `torch.linalg.det`; all derivatives are finite and right at singular matrices, too.

    Args:
        A: (..., n, n).
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        det A, (...).

    Raises:
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> A = torch.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
        >>> det(A, strategy="triangular_solve").backward()
        >>> A.grad.round(decimals=4).tolist()
        [[4.0, -2.0], [-2.0, 1.0]]
    """
    (chosen,) = choose(strategy, "det", A)
    if chosen.forward_is_differentiable:
        return torch.linalg.det(A)
    require_float_matrix("det", A, square=True)
    return run(_Det(), chosen, A)[0]


def slogdet(A: Tensor, *, strategy: StrategyChoice = "auto") -> SlogdetResult:
    """The sign and the logarithm of the absolute value of each determinant.

    As `torch.linalg.slogdet`.

    Args:
        A: (..., n, n).
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        sign, (...), of modulus 1 or 0, and logabsdet, (...), real.

    Raises:
        torch.linalg.LinAlgError: in the backward, where a matrix is singular.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> slogdet(torch.tensor([[-1.0]]), strategy="triangular_solve")
        SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    (chosen,) = choose(strategy, "det", A)
    if chosen.forward_is_differentiable:
        return SlogdetResult(*torch.linalg.slogdet(A))
    require_float_matrix("slogdet", A, square=True)
    return SlogdetResult(*run(_Slogdet(), chosen, A)[:2])


def _exact(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.square import det_gradient

    matrix, cotangent = problem.operands
    return (det_gradient(matrix, cotangent, problem.profile),)


def _exact_slogdet(problem: Problem) -> tuple[Matrix, ...]:
    from strategies.exact.square import slogdet_gradient

    return (slogdet_gradient(*problem.operands),)


def _slogdet_outputs(result: SlogdetResult) -> tuple[Tensor, ...]:
    """The sign of a real determinant is constant wherever log|det| has a gradient."""
    return tuple(result) if result.sign.is_complex() else (result.logabsdet,)


RECORDS = (
    Operation(
        name="det",
        function=det,
        output_shapes=lambda matrix: [matrix[:-2]],
        exact=_exact,
        cells=grids.SQUARE,
        square=True,
    ),
    Operation(
        name="slogdet",
        function=slogdet,
        outputs=_slogdet_outputs,
        output_shapes=lambda matrix: [matrix[:-2]] * 2,
        exact=_exact_slogdet,
        cells=grids.SQUARE,
        square=True,
        needs_full_rank=True,
        stem="det",
        answered_by="det",
    ),
)
