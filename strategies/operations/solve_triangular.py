"""`solve_triangular`, systems with a triangular matrix."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import (
    StrategyChoice,
    are_matrices,
    choose,
    is_left_to_torch,
    name_of,
)
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas.solve import rhs_tangent
from strategies.formulas.triangles import triangle_of_product
from strategies.kernels.cpu.specs import is_for_blas
from strategies.operations.right_hand_sides import fit, for_each_matrix
from strategies.operations.scaled_rule import with_normalized_cotangents, with_normalized_directions
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["solve_triangular"]

RECORDS = ()

_LARGE = 512
"""Rows from which to write one triangle is faster than to write all and cut off, as measured."""


@dataclass(frozen=True)
class _SolveTriangular(Rule):
    """A X = B: B̄ = A⁻ᴴG, and Ā is the triangle of −B̄ Xᴴ, without the diagonal where that is one."""

    name = "solve_triangular"
    arity = 2
    unread_inputs = (1,)

    upper: bool
    unitriangular: bool

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        # Substitution whatever the strategy: to form an inverse for one solve takes longer.
        return (self._solve(*inputs),), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        structure = Structure.of_triangle(upper=self.upper, unit=self.unitriangular)
        rhs_gradient = strategy.factor_triangular(saved.matrix, structure).apply_adjoint(
            *cotangents
        )
        if not needed[0]:
            return None, rhs_gradient
        gradient = triangle_of_product(
            saved.matrix,
            -rhs_gradient,
            saved.result.mH,
            upper=self.upper,
            strictly=self.unitriangular,
        )
        return gradient, rhs_gradient

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        rhs_gradient = torch.linalg.solve_triangular(
            at.matrix.mH, *cotangents, upper=not self.upper, unitriangular=self.unitriangular
        )
        return self._triangle(-rhs_gradient @ at.result.mH), rhs_gradient

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        return (self._solve(at.matrix, self._rhs_tangent(at.result, *tangents)),)

    def tangents(self, computed: Computed, tangents: Gradients) -> Tensors:
        A, change = computed.inputs[0], self._rhs_tangent(computed.outputs[0], *tangents)
        outputs = _FAST_PATHS[self.upper, self.unitriangular](computed.strategy, A, change)
        return (self._solve(A, change),) if outputs is None else outputs

    def second_backward(
        self, computed: Computed, gradients: Gradients, _: Gradients, directions: Gradients
    ) -> SecondGradients:
        """⟨Ā, D⟩ + ⟨B̄, E⟩ is ⟨B̄, E − D X⟩, and ⟨G, Ẋ⟩ with the tangent of X along D and E."""
        of_matrix, rhs_gradient = directions[0], only(gradients[1:])
        (tangent,) = self.tangents(computed, directions)
        of_A = self._triangle(-rhs_gradient @ tangent.mH)
        of_X = None if of_matrix is None else -self._triangle(of_matrix).mH @ rhs_gradient
        return (of_A, None), (of_X,), (tangent,)

    def _rhs_tangent(self, X: Tensor, of_matrix: Tensor | None, of_rhs: Tensor | None) -> Tensor:
        triangle = None if of_matrix is None else self._triangle(of_matrix)
        return rhs_tangent(X, triangle, of_rhs)

    def _solve(self, A: Tensor, B: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(
            A, B, upper=self.upper, unitriangular=self.unitriangular
        )

    def _triangle(self, matrix: Tensor) -> Tensor:
        offset = int(self.unitriangular)
        return matrix.triu(offset) if self.upper else matrix.tril(-offset)


def _traced_solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    is_taken = fit(A, B, left) and not (
        strategy == "auto"
        and A.shape[-1] < _LARGE
        and is_for_blas(A.shape[-1], B.shape[-1 if left else -2])
    )
    if not is_taken:
        return torch.linalg.solve_triangular(
            A, B, upper=upper, left=left, unitriangular=unitriangular
        )
    if not left:
        A, B, upper = A.mT, B.mT, not upper
    X = _SOLVE_TRIANGULAR(A, B, upper, unitriangular, name_of(strategy))[0]
    return X if left else X.mT


@traceable_by(_traced_solve_triangular)
def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    """The X with A X = B, or X A = B where `left` is False; A triangular.

    As `torch.linalg.solve_triangular`: the other triangle is not read, and its gradient is zero.

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        B: (..., n, k), or (..., k, n) where `left` is False; batch dimensions are broadcast.
        upper: which triangle.
        left: on which side of X the matrix stands.
        unitriangular: the diagonal is one, and not read either.
        strategy: how the triangle is inverted in the backward: a name from
            `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        X, of the broadcast shape of B. As in PyTorch it is not finite where the diagonal has a zero.

    Raises:
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> solve_triangular(torch.tensor([[2.0]]), torch.tensor([[4.0]]), upper=True)
        tensor([[2.]])
    """
    fast_path = _FAST_PATHS[upper == left, unitriangular]
    if left and (outputs := fast_path(strategy, A, B)) is not None:
        return outputs[0]
    if not left and are_matrices(A) and are_matrices(B):
        outputs = fast_path(strategy, A.mT, B.mT)
        if outputs is not None:
            return outputs[0].mT
    is_small = isinstance(A, Tensor) and A.ndim > 1 and A.shape[-1] < _LARGE
    if not is_left_to_torch(strategy, "solve_triangular", is_small) and fit(A, B, left):
        candidates = choose(strategy, "solve_triangular", A, B)
        if not candidates[0].forward_is_differentiable:
            if not left:
                A, B, upper = A.mT, B.mT, not upper
            (X,) = _general(upper, unitriangular, candidates, A, B)
            return X if left else X.mT
    return torch.linalg.solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def _general(
    upper: bool, unitriangular: bool, candidates: tuple[Strategy, ...], A: Tensor, B: Tensor
) -> Tensors:
    rule, chosen = _SolveTriangular(upper, unitriangular), candidates[0]
    return (for_each_matrix(lambda A, B: run(rule, chosen, A, B)[0], A, B),)


_FAST_PATHS = {
    (upper, unit): FastPath(
        f"solve_{'unit_' if unit else ''}{'upper' if upper else 'lower'}",
        functools.partial(_general, upper, unit),
        policy_operation="solve_triangular",
        otherwise="fused",
        explicit=with_normalized_cotangents(_SolveTriangular(upper, unit).explicit),
        tangents=_SolveTriangular(upper, unit).tangents,
        second_backward=with_normalized_directions(_SolveTriangular(upper, unit).second_backward),
        unread=(1,),
        arity=2,
    )
    for upper in (False, True)
    for unit in (False, True)
}

ATEN = tuple(
    calls
    for upper, unit in _FAST_PATHS
    for calls in (
        AtenCalls(
            "linalg_solve_triangular",
            _FAST_PATHS[upper, unit],
            [upper, True, unit],
            by_columns=(0,),
        ),
        AtenCalls(
            "linalg_solve_triangular",
            _FAST_PATHS[not upper, unit],
            [upper, False, unit],
            is_transposed=True,
        ),
    )
)


_SOLVE_TRIANGULAR = Operator(
    "solve_triangular",
    ["A", "B"],
    "bool upper, bool unitriangular",
    fast_paths=[(path, [*flags]) for flags, path in _FAST_PATHS.items()],
)
