"""`inv`, the inverse of square matrices, and `inv_ex`, which reports a singular one in `info`.

The fast path reports it. What a strategy refuses is left to PyTorch, with the rest of its batch.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, first_that_can, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.errors import LinAlgError
from strategies.factors import DenseInverse
from strategies.formulas import solve as formula
from strategies.operations import grids
from strategies.operations.record import Operation, exact
from strategies.operations.results import InvExResult
from strategies.operations.scaled_rule import (
    Factored,
    ScaledRule,
    are_moderate,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["InvExResult", "inv", "inv_ex"]


@dataclass(frozen=True)
class _Inv(ScaledRule):
    name = "inv"
    degrees = (-1,)
    unread_inputs = (0,)

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **_: Any) -> Factored:
        inverse = strategy.factor_square(*inputs)
        return inverse.dense(), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Tensor:
        return formula.inv_backward(saved.inverse, cotangent)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        return (formula.inv_backward(DenseInverse(at.result), *cotangents),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        return (formula.inv_jvp(at.result, only(tangents)),)


def _traced_inv(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    if not are_matrices(A, square=True):
        return torch.linalg.inv(A)
    return _OPERATOR(A, name_of(strategy))[0]


@traceable_by(_traced_inv)
def inv(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """A⁻¹ of each matrix of a batch.

    As `torch.linalg.inv`.

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        A⁻¹, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: a matrix is singular; or elements grow so much in its elimination that
            digits are lost, and the strategy eliminates ("auto" takes another then).
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> inv(torch.tensor([[4.0]]), strategy="explicit_inverse")
        tensor([[0.2500]])
    """
    outputs = _FAST_PATH(strategy, A)
    if outputs is None:
        outputs = _general(choose(strategy, "inv", A, square=True, any_rank=True), A)
    return outputs[0]


def _traced_inv_ex(
    A: Tensor, *, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> InvExResult:
    if not are_matrices(A, square=True):
        return InvExResult._make(torch.linalg.inv_ex(A, check_errors=check_errors))
    return InvExResult(*_OPERATOR_EX(A, check_errors, name_of(strategy)))


@traceable_by(_traced_inv_ex)
def inv_ex(
    A: Tensor, *, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> InvExResult:
    """`inv` that reports a singular matrix in `info` (the 1-based position of a zero pivot; 0 is none).

    As `torch.linalg.inv_ex`. If a strategy refuses a matrix, the whole batch is PyTorch's.

    Args:
        A: (..., n, n).
        check_errors: raise where a matrix is singular.
        strategy: as in `inv`.

    Returns:
        A⁻¹, (..., n, n), and info, int32 (...). Where info is not zero, A⁻¹ is not finite.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular and `check_errors` is set.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> inv_ex(torch.tensor([[[4.0]], [[0.0]]])).info
        tensor([0, 1], dtype=torch.int32)
    """
    fast_path = _CHECKED_FAST_PATH if check_errors else _FAST_PATH_EX
    if (outputs := fast_path(strategy, A)) is not None:
        return InvExResult._make(outputs)
    if are_matrices(A, square=True):
        try:
            candidates = choose(strategy, "inv", A, square=True, any_rank=True)
            return InvExResult(_general(candidates, A)[0], none_singular(A))
        except LinAlgError:
            pass
    return InvExResult._make(torch.linalg.inv_ex(A, check_errors=check_errors))


def none_singular(A: Tensor) -> Tensor:
    """The info of matrices none of which is singular."""
    return torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)


def _general(candidates: tuple[Strategy, ...], A: Tensor) -> Tensors:
    return (first_that_can(candidates, lambda chosen: _inv(chosen, A)),)


def _inv(chosen: Strategy, A: Tensor) -> Tensor:
    if chosen.forward_is_differentiable:
        return torch.linalg.inv(A)
    return run(_Inv(), chosen, A)[0]


def _second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    # Operators have A. Autograd has not kept it: it adds what else the loss has of A⁻¹, and pulls back the
    # sum. The first gradient may be out of the range of numbers, and the second in it.
    has_matrix = computed.inputs[0] is not None
    by_matrix = has_matrix and are_moderate(only(gradients))
    return _second(computed, gradients if by_matrix else (None,), cotangents, directions)


@with_normalized_directions
def _second(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    """By A, given the first gradient, else by A⁻¹."""
    found, of_cotangent = formula.inv_second_backward(
        computed.outputs[0], cotangents[0], only(directions), gradients[0]
    )
    of_A, of_inverse = (None, found) if gradients[0] is None else (found, None)
    return (of_A,), (of_inverse,), (of_cotangent, *cotangents[1:])


_FAST_PATH = FastPath(
    "inv",
    _general,
    policy_operation="inv",
    any_rank=True,
    explicit=with_normalized_cotangents(_Inv().explicit),
    tangents=_Inv().tangents,
    second_backward=_second_backward,
    second_backward_rows=64,
    unread=(0,),
)
_FAST_PATH_EX = dataclasses.replace(_FAST_PATH, operation="inv_ex", unread_outputs=(1,))
_CHECKED_FAST_PATH = dataclasses.replace(_FAST_PATH, reports=True)
_OPERATOR = Operator("inv", ["A"], any_rank=True, by_columns=(0,), fast_paths=[(_FAST_PATH, [])])
_OPERATOR_EX = Operator(
    "inv_ex",
    ["A"],
    "bool check_errors",
    outputs=2,
    measured_as="inv",
    any_rank=True,
    fast_paths=[(_FAST_PATH_EX, [False]), (_CHECKED_FAST_PATH, [True])],
)

ATEN = (
    AtenCalls("linalg_inv", _FAST_PATH),
    AtenCalls("linalg_inv_ex", _FAST_PATH_EX, [False], returned=(0, 1)),
    AtenCalls("linalg_inv_ex", _CHECKED_FAST_PATH, [True], returned=(0, 1)),
)


RECORDS = (
    Operation(
        name="inv",
        function=inv,
        exact=lambda problem: (exact("square").inv_gradient(*problem.operands),),
        exact_result=lambda problem: (problem.operands[0].inv(),),
        falls_back=True,
        cells=grids.SQUARE,
        square=True,
        needs_full_rank=True,
    ),
)
