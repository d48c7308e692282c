"""`cholesky_solve` and `cholesky_inverse`: systems and inverses, from a Cholesky factor."""

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
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas import cholesky as formula
from strategies.formulas.amplification import squared_condition_number
from strategies.formulas.domains import LOWER_TRIANGULAR
from strategies.operations import grids
from strategies.operations.record import Operation, exact
from strategies.operations.right_hand_sides import fit, folded, over_columns
from strategies.operations.scaled_rule import (
    Factored,
    ScaledRule,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["cholesky_inverse", "cholesky_solve"]


class _OfFactor(ScaledRule):
    """A function of L Lᴴ that reads the lower triangle of L."""

    def read(self, inputs: Tensors) -> Tensors:
        return (inputs[0].tril(), *inputs[1:])


@dataclass(frozen=True)
class _CholeskySolve(_OfFactor):
    name = "cholesky_solve"
    arity = 2
    degrees = (-2, 1)
    over_batch = staticmethod(over_columns)

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **_: Any) -> Factored:
        L, B = inputs
        inverse = strategy.factor_triangular(L, Structure.LOWER)
        return formula.solve(inverse, B), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Gradients:
        if not need_matrix:
            return None, formula.solve(saved.inverse, cotangent)
        return formula.solve_backward(saved.inverse, saved.rhs, saved.result, cotangent)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        inverse = FullTriangular(at.matrix, Structure.LOWER)
        return formula.solve_backward(inverse, at.rhs, at.result, *cotangents)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        inverse = FullTriangular(at.matrix, Structure.LOWER)
        return (formula.solve_jvp(inverse, inverse.apply(at.rhs), at.result, *tangents),)


def _traced_cholesky_solve(
    B: Tensor, L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    if not fit(L, B, left=True):
        return torch.cholesky_solve(B, L, upper=upper)
    columns, restored = folded(L, B)
    return restored(_SOLVE(L.mH if upper else L, columns, name_of(strategy))[0])


@traceable_by(_traced_cholesky_solve)
def cholesky_solve(
    B: Tensor, L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    """The X with A X = B, from the Cholesky factor of A.

    As `torch.cholesky_solve`; torch.linalg has no function of that name. Only one triangle of L
    is read; the gradient is that of (L Lᴴ)⁻¹B for a full matrix L, and has entries in both triangles.

    Args:
        B: (..., n, k), of a dtype as in `pinv`.
        L: (..., n, n), lower triangular with A = L Lᴴ; batches are broadcast.
        upper: L is upper triangular and A = Lᴴ L.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        X = A⁻¹ B, (..., n, k).

    Raises:
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> cholesky_solve(torch.tensor([[8.0]]), torch.tensor([[2.0]]), strategy="triangular_solve")
        tensor([[2.]])
    """
    if fits := fit(L, B, left=True):
        columns, restored = folded(L, B)
        factor = L.mH if upper else L
        if (outputs := _solve_fast_path(strategy, factor, columns)) is not None:
            return restored(outputs[0])
    candidates = choose(strategy, "cholesky_solve", L, B, square=True)
    if candidates[0].forward_is_differentiable or not fits:
        return torch.cholesky_solve(B, L, upper=upper)
    return restored(_general_solve(candidates, factor, columns)[0])


def _general_solve(candidates: tuple[Strategy, ...], L: Tensor, B: Tensor) -> Tensors:
    (chosen,) = candidates
    if chosen.forward_is_differentiable:
        return (torch.cholesky_solve(B, L),)
    return run(_CholeskySolve(), chosen, L, B)[:1]


def _solve_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    (L, B), (X,), factors = computed.inputs, computed.outputs, computed.factors
    inverse = Triangular(L, Structure.LOWER)
    halfway = factors[0] if factors else inverse.apply(B)
    return (formula.solve_jvp(inverse, halfway, X, *tangents),)


@with_normalized_directions
def _second_backward_of_solve(
    computed: Computed, _: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    (L, B), (X,) = computed.inputs, computed.outputs
    of_L, of_B, of_G = formula.solve_second_backward(
        Triangular(L, Structure.LOWER), B, X, only(cotangents), *directions
    )
    return (of_L, of_B), (None,), (of_G,)


_solve_fast_path = FastPath(
    "cholesky_solve",
    _general_solve,
    policy_operation="cholesky_solve",
    explicit=with_normalized_cotangents(_CholeskySolve().explicit),
    tangents=_solve_tangents,
    second_backward=_second_backward_of_solve,
    arity=2,
)
_SOLVE = Operator(
    "cholesky_solve",
    ["L", "B"],
    fake=lambda L, B: (B.new_empty(torch.cholesky_solve(B, L).shape),),
    by_columns=(0,),
    fast_paths=[(_solve_fast_path, [])],
    workspace=lambda _, n, k: (n * k, 0),
)


def _matrix_first(L: Tensor, B: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """`cholesky_solve` as the record of an operation has it."""
    return cholesky_solve(B, L, strategy=strategy)


@dataclass(frozen=True)
class _CholeskyInverse(_OfFactor):
    name = "cholesky_inverse"
    degrees = (-2,)

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **_: Any) -> Factored:
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
    return _INVERSE(L.mH if upper else L, name_of(strategy))[0]


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
    outputs = _inverse_fast_path(strategy, L.mH if upper and are_matrices(L) else L)
    if outputs is not None:
        return outputs[0]
    (chosen,) = choose(strategy, "cholesky_inverse", L, square=True)
    return _inverse(chosen, L, upper)


def _general_inverse(candidates: tuple[Strategy, ...], L: Tensor) -> Tensors:
    return (_inverse(candidates[0], L, upper=False),)


def _inverse_tangents(computed: Computed, tangents: Gradients) -> Tensors:
    (L,), (result,) = computed.inputs, computed.outputs
    return (formula.inverse_jvp(Triangular(L, Structure.LOWER), result, only(tangents)),)


@with_normalized_directions
def _second_backward_of_inverse(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    (L,), (result,) = computed.inputs, computed.outputs
    of_L, of_cotangent = formula.inverse_second_backward(
        Triangular(L, Structure.LOWER), result, *map(only, (gradients, cotangents, directions))
    )
    return (of_L,), (None,), (of_cotangent,)


_inverse_fast_path = FastPath(
    "cholesky_inverse",
    _general_inverse,
    policy_operation="cholesky_inverse",
    explicit=with_normalized_cotangents(_CholeskyInverse().explicit),
    tangents=_inverse_tangents,
    second_backward=_second_backward_of_inverse,
)
_INVERSE = Operator(
    "cholesky_inverse", ["L"], by_columns=(0,), fast_paths=[(_inverse_fast_path, [])]
)


def _inverse(chosen: Strategy, L: Tensor, upper: bool) -> Tensor:
    if chosen.forward_is_differentiable:
        return torch.cholesky_inverse(L, upper=upper)
    return run(_CholeskyInverse(), chosen, L.mH if upper else L)[0]


ATEN = (
    AtenCalls("cholesky_solve", _solve_fast_path, [False], inputs=(1, 0)),
    AtenCalls("cholesky_inverse", _inverse_fast_path, [False]),
)

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
    Operation(
        name="cholesky_solve",
        function=_matrix_first,
        native=lambda L, B: torch.cholesky_solve(B, L),
        exact=lambda problem: exact("cholesky").solve_gradient(*problem.operands),
        exact_result=lambda problem: (exact("cholesky").solve(*problem.operands[:2]),),
        cells=grids.SOLVE,
        domain=LOWER_TRIANGULAR,
        arity=2,
        takes_vectors=False,
        square=True,
        needs_full_rank=True,
        amplification=squared_condition_number,
    ),
)
