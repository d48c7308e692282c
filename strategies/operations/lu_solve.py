"""`lu_solve`, square systems by LU factors that are there already."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from strategies import policy
from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import (
    StrategyChoice,
    are_matrices,
    choose,
    is_left_to_torch,
    name_of,
)
from strategies.autograd.fast_path import FastPath
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import is_forward_alone, run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Rule, Tensors
from strategies.factors import elimination
from strategies.factors.pivots import inverse_order
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas import lu_solve as formula
from strategies.operations.right_hand_sides import fit, for_each_matrix
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["lu_solve"]

RECORDS = ()

_LARGE = 2**14
"""Entries of all matrices together, from which O(n²k) operations are faster than few calls, as measured."""


@dataclass(frozen=True)
class _LUSolve(Rule):
    """Inputs: packed LU, B, pivots. Outputs: X, inverse row order."""

    name = "lu_solve"
    arity = 2

    adjoint: bool

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        LU, B, pivots = inputs
        # Substitution whatever the strategy: to form an inverse for one solve takes longer.
        X = elimination.lu_solve(LU, pivots, B, adjoint=self.adjoint)
        return (X, inverse_order(pivots.contiguous(), LU.shape[-1])), None

    def saved_inputs(self, inputs: Tensors, inverse: PseudoInverse | None) -> Tensors:
        LU, B = inputs
        return LU, B.clone()  # the caller may overwrite it

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        (LU, B), (X, order) = saved.inputs, saved.outputs
        tensors = LU, order, B, X, *cotangents
        lower = strategy.factor_triangular(LU, Structure.UNIT_LOWER)
        upper = strategy.factor_triangular(LU, Structure.UPPER)
        return formula.backward(
            lower, upper, *tensors, adjoint=self.adjoint, need_factors=needed[0]
        )

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        X, order = at.outputs
        return formula.explicit_backward(at.matrix, X, order, *cotangents, adjoint=self.adjoint)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        X, order = at.outputs
        change = formula.rhs_tangent(at.matrix, X, order, *tangents, adjoint=self.adjoint)
        return (formula.solution(at.matrix, order, change, adjoint=self.adjoint),)

    def explicit_of_inputs(
        self, strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
    ) -> Tensors:
        """As `FastPath` takes the explicit gradient."""
        _refuse_other_rows(cast(Tensor, inputs[2]))
        LU, order = _factors(*inputs)
        of_inputs = self.explicit(strategy, (LU, None), (outputs[0], order), cotangents)
        return cast(Tensors, (*of_inputs, None))

    def tangents(self, computed: Computed, tangents: Gradients) -> Tensors:
        """As `FastPath` takes them."""
        LU, order = _factors(*computed.inputs)
        change = formula.rhs_tangent(
            LU, computed.outputs[0], order, *tangents[:2], adjoint=self.adjoint
        )
        outputs = _FAST_PATHS[self.adjoint](computed.strategy, LU, change, computed.inputs[2])
        return outputs or (formula.solution(LU, order, change, adjoint=self.adjoint),)


def _refuse_other_rows(pivots: Tensor) -> None:
    """Pivots may have changed since the forward, which autograd does not always see."""
    if not bool(((pivots > 0) & (pivots <= pivots.shape[-1])).all()):
        raise RuntimeError("the backward of lu_solve: pivots must be from 1 to the rows of LU")


def _factors(LU: Tensor | None, _: Tensor | None, pivots: Tensor | None) -> Tensors:
    """Packed factors and the inverse of the order of rows, of inputs of the fast path."""
    LU, pivots = cast(Tensors, (LU, pivots))
    return LU, inverse_order(pivots.contiguous(), LU.shape[-1])


def _general(
    adjoint: bool, candidates: tuple[Strategy, ...], LU: Tensor, B: Tensor, pivots: Tensor
) -> Tensors:
    return (run(_LUSolve(adjoint), candidates[0], LU, B, pivots)[0],)


_FAST_PATHS = {
    adjoint: FastPath(
        "lu_solve_adjoint" if adjoint else "lu_solve",
        functools.partial(_general, adjoint),
        policy_operation="lu_solve",
        otherwise="fused",
        explicit=_LUSolve(adjoint).explicit_of_inputs,
        tangents=_LUSolve(adjoint).tangents,
        unread=(1,),
        arity=3,
    )
    for adjoint in (False, True)
}

ATEN = tuple(
    AtenCalls("linalg_lu_solve", fast_path, [True, adjoint], inputs=(0, 2, 1), by_columns=(0,))
    for adjoint, fast_path in _FAST_PATHS.items()
)


def _by_fast_path(
    strategy: StrategyChoice, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool
) -> Tensor | None:
    if left:
        outputs = _FAST_PATHS[adjoint](strategy, LU, B, pivots)
        return None if outputs is None else outputs[0]
    if not are_matrices(B) or B.is_complex():  # of whose adjoint views no kernel knows
        return None
    # X A = B where Aᵀ Xᵀ = Bᵀ
    X = _by_fast_path(strategy, LU, pivots, B.mT, True, not adjoint)
    return None if X is None else X.mT


def _traced_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    if not _fit(LU, pivots, B, left):
        return torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)
    if not left:  # X A = B where Aᴴ Xᴴ = Bᴴ
        B, adjoint = B.mH, not adjoint
    X = _LU_SOLVE(LU, B, pivots, adjoint, name_of(strategy))[0]
    return X if left else X.mH


@traceable_by(_traced_lu_solve)
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    """The X with A X = B or, by the options, Aᴴ X = B, X A = B or X Aᴴ = B; A = P L U.

    As `torch.linalg.lu_solve`. The backward, too, takes O(n²k) operations, and has the gradient for
    its only n×n array.

    Args:
        LU: as `lu_factor` returns it, (..., n, n), of a dtype as in `pinv`.
        pivots: likewise, int32 (..., n).
        B: (..., n, k), or (..., k, n) where `left` is False; batch dimensions are broadcast.
        left: on which side of X the matrix stands.
        adjoint: solve with Aᴴ.
        strategy: how the triangles are inverted in the backward: a name from
            `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        X, of the broadcast shape of B. As in PyTorch it is not finite where U is singular.

    Raises:
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.0]])), torch.tensor([[4.0]]))
        tensor([[2.]])
    """
    if (X := _by_fast_path(strategy, LU, pivots, B, left, adjoint)) is not None:
        return X
    is_tensor = isinstance(LU, Tensor) and isinstance(B, Tensor)
    native = elimination.lu_solve if is_tensor else torch.linalg.lu_solve
    if (
        is_forward_alone(strategy, LU, B)
        or is_left_to_torch(strategy, "lu_solve", is_tensor and LU.numel() < _LARGE)
        or not _fit(LU, pivots, B, left)
    ):
        return native(LU, pivots, B, left=left, adjoint=adjoint)
    if strategy == "auto" and not policy.covers("lu_solve"):
        strategy = "fused"
    chosen, *_ = choose(strategy, "lu_solve", LU, B)
    if chosen.forward_is_differentiable:
        return native(LU, pivots, B, left=left, adjoint=adjoint)
    if not left:  # X A = B where Aᴴ Xᴴ = Bᴴ
        B, adjoint = B.mH, not adjoint
    rule = _LUSolve(adjoint)
    X = for_each_matrix(lambda LU, B, p: run(rule, chosen, LU, B, p)[0], LU, B, pivots)
    return X if left else X.mH.resolve_conj()


def _fit(LU: Tensor, pivots: Tensor, B: Tensor, left: bool) -> bool:
    """Whether these are factors and right-hand sides that belong together."""
    return (
        fit(LU, B, left)
        and isinstance(pivots, Tensor)
        and pivots.dtype == torch.int32
        and pivots.device == LU.device
        and pivots.shape == LU.shape[:-1]
    )


def _fake(LU: Tensor, B: Tensor, pivots: Tensor, adjoint: bool) -> Tensors:
    return (B.new_empty(torch.linalg.lu_solve(LU, pivots, B, adjoint=adjoint).shape),)


_LU_SOLVE = Operator(
    "lu_solve",
    ["LU", "B"],
    "Tensor pivots, bool adjoint",
    fake=_fake,
    constants=1,
    fast_paths=[(path, [adjoint]) for adjoint, path in _FAST_PATHS.items()],
    workspace=lambda _, n, k: (n * k, 0),
)
