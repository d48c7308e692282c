"""`cholesky_inverse`: inverses of positive definite matrices, from their Cholesky factor."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.full_triangular import FullTriangular
from strategies.autograd.nodes import run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.factors import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas import cholesky as formula
from strategies.formulas.amplification import squared_condition_number
from strategies.formulas.domains import LOWER_TRIANGULAR
from strategies.operations import grids
from strategies.operations.record import Operation, exact
from strategies.operations.scaled_rule import (
    ScaledRule,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["cholesky_inverse"]


@dataclass(frozen=True)
class _CholeskyInverse(ScaledRule):
    name = "cholesky_inverse"
    degrees = (-2,)

    def read(self, inputs: Tensors) -> Tensors:
        return (inputs[0].tril(), *inputs[1:])

    def by_factor(
        self, strategy: Strategy, *inputs: Tensor, **_: Any
    ) -> tuple[Tensor, PseudoInverse]:
        inverse = strategy.factor_triangular(inputs[0], Structure.LOWER)
        return torch.cholesky_inverse(_with_real_diagonal(inputs[0])), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Tensor:
        return formula.inverse_backward(saved.inverse, saved.result, cotangent)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        inverse = FullTriangular(at.matrix, Structure.LOWER)
        return (formula.inverse_backward(inverse, at.result, cotangents[0]),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        inverse = FullTriangular(at.matrix, Structure.LOWER)
        return (formula.inverse_jvp(inverse, at.result, only(tangents)),)


def _with_real_diagonal(L: Tensor) -> Tensor:
    """Another factor of L Lᴴ: LAPACK takes the diagonal for real."""
    if not L.is_complex():
        return L
    return L * L.diagonal(dim1=-2, dim2=-1).sgn().conj().unsqueeze(-2)


def _traced_cholesky_inverse(
    L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    if not are_matrices(L, square=True):
        return torch.cholesky_inverse(L, upper=upper)
    return _OPERATOR(L.mH if upper else L, name_of(strategy))[0]


@traceable_by(_traced_cholesky_inverse)
def cholesky_inverse(
    L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    """A⁻¹ from the Cholesky factor of A.

    As `torch.cholesky_inverse`; torch.linalg has no function of that name. Only one triangle of
    L is read; the gradient is that of (L Lᴴ)⁻¹ for a full matrix L, and has entries in both triangles.

    Args:
        L: (..., n, n), lower triangular with A = L Lᴴ, of a dtype as in `pinv`.
        upper: L is upper triangular and A = Lᴴ L.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        A⁻¹, (..., n, n), Hermitian.

    Raises:
        RuntimeError: L is not a batch of square float matrices, or has a zero on its diagonal.

    Example:
        >>> cholesky_inverse(torch.tensor([[2.0]]), strategy="explicit_inverse")
        tensor([[0.2500]])
    """
    outputs = _fast_path(strategy, L.mH if upper and are_matrices(L) else L)
    if outputs is not None:
        return outputs[0]
    (chosen,) = choose(strategy, "cholesky_inverse", L, square=True)
    return _inverse(chosen, L, upper)


def _general(candidates: tuple[Strategy, ...], L: Tensor) -> Tensors:
    return (_inverse(candidates[0], L, upper=False),)


def _tangents(computed: Computed, tangents: Gradients) -> Tensors:
    (L,), (result,) = computed.inputs, computed.outputs
    return (formula.inverse_jvp(Triangular(L, Structure.LOWER), result, only(tangents)),)


@with_normalized_directions
def _second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    (L,), (result,) = computed.inputs, computed.outputs
    of_L, of_cotangent = formula.inverse_second_backward(
        Triangular(L, Structure.LOWER),
        result,
        only(gradients),
        only(cotangents),
        only(directions),
    )
    return (of_L,), (None,), (of_cotangent,)


_fast_path = FastPath(
    "cholesky_inverse",
    _general,
    policy_operation="cholesky_inverse",
    explicit=with_normalized_cotangents(_CholeskyInverse().explicit),
    tangents=_tangents,
    second_backward=_second_backward,
)
_OPERATOR = Operator("cholesky_inverse", ["L"], by_columns=(0,), fast_paths=[(_fast_path, [])])
ATEN = (AtenCalls("cholesky_inverse", _fast_path, [False]),)


def _inverse(chosen: Strategy, L: Tensor, upper: bool) -> Tensor:
    if chosen.forward_is_differentiable:
        return torch.cholesky_inverse(L, upper=upper)
    return run(_CholeskyInverse(), chosen, L.mH if upper else L)[0]


RECORDS = (
    Operation(
        name="cholesky_inverse",
        function=cholesky_inverse,
        native=torch.cholesky_inverse,
        exact=lambda problem: (exact("cholesky").inverse_gradient(*problem.operands),),
        exact_result=lambda problem: (exact("cholesky").inverse(problem.operands[0]),),
        cells=grids.SQUARE,
        domain=LOWER_TRIANGULAR,
        square=True,
        needs_full_rank=True,
        amplification=squared_condition_number,
    ),
)
