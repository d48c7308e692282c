"""`solve`, square systems, and `solve_ex`, which reports a singular matrix as `inv_ex` does."""

import dataclasses
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import (
    StrategyChoice,
    are_matrices,
    are_of_kind,
    choose,
    first_that_can,
    name_of,
)
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import is_opaque, run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.errors import LinAlgError
from strategies.formulas import solve as formula
from strategies.operations import grids
from strategies.operations.inv import none_singular
from strategies.operations.lu_solve import lu_solve
from strategies.operations.record import Operation, exact
from strategies.operations.results import SolveExResult
from strategies.operations.right_hand_sides import (
    as_columns,
    as_vectors,
    fit,
    folded,
    for_each_matrix,
    is_vector,
    over_columns,
)
from strategies.operations.scaled_rule import (
    Factored,
    ScaledRule,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["SolveExResult", "solve", "solve_ex"]


@dataclass(frozen=True)
class _Solve(ScaledRule):
    name = "solve"
    arity = 2
    degrees = (-1, 1)
    over_batch = staticmethod(over_columns)
    unread_inputs = (1,)

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **_: Any) -> Factored:
        A, B = inputs
        inverse = strategy.factor_square(A)
        return inverse.apply(B), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Gradients:
        return formula.backward(saved.inverse, saved.result, cotangent, need_matrix=need_matrix)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        rhs_gradient = _solution(strategy, at.matrix.mH, cotangents[0])
        return -rhs_gradient @ at.result.mH, rhs_gradient

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        return (_solution(strategy, at.matrix, formula.rhs_tangent(at.result, *tangents)),)


def _solution(strategy: Strategy, A: Tensor, B: Tensor) -> Tensor:
    """A⁻¹B, differentiable in every mode and to every order.

    PyTorch's own is not in forward over forward mode (PyTorch issue 198017).
    """
    if is_opaque(B):
        return torch.linalg.solve(A, B)
    outputs = _FAST_PATH(strategy, A, B)
    return run(_Solve(), strategy, A, B)[0] if outputs is None else outputs[0]


def _traced_solve(
    A: Tensor, B: Tensor, *, left: bool = True, strategy: StrategyChoice = "auto"
) -> Tensor:
    if not (are_matrices(A, square=True) and are_of_kind(A, B)):
        return torch.linalg.solve(A, B, left=left)
    if is_vector(A, B) or not fit(A, B, left):
        if left:
            return _OPERATOR(A, B, name_of(strategy))[0]
        return torch.linalg.solve(A, B, left=False)
    if not left:
        return _traced_solve(A.mT, B.mT, strategy=strategy).mT
    columns, restored = folded(A, B)
    return restored(_OPERATOR(A, columns, name_of(strategy))[0])


@traceable_by(_traced_solve)
def solve(A: Tensor, B: Tensor, *, left: bool = True, strategy: StrategyChoice = "auto") -> Tensor:
    """The X with A X = B, or X A = B where `left` is False; A square and nonsingular.

    As `torch.linalg.solve`, its rules of broadcasting included: B is a batch of vectors where it is
    one-dimensional, or has one dimension less than A and the shape A.shape[:-1].

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        B: (..., n, k), (..., n) or (n,); (..., k, n) where `left` is False.
        left: on which side of X the matrix stands.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        X, of the broadcast shape of B.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular; or elements grow so much in its elimination that
            digits are lost, and the strategy eliminates ("auto" takes another then).
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> solve(torch.tensor([[2.0]]), torch.tensor([4.0]), strategy="triangular_solve")
        tensor([2.])
    """
    if (X := _by_fast_path(strategy, A, B, left)) is not None:
        return X
    candidates = choose(strategy, "solve", A, B, square=True, any_rank=True)
    return first_that_can(candidates, lambda chosen: _solve(chosen, A, B, left))


def _traced_solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> SolveExResult:
    if not (are_matrices(A, square=True) and are_of_kind(A, B)):
        return SolveExResult._make(
            torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
        )
    return SolveExResult(*_OPERATOR_EX(A, B, left, check_errors, name_of(strategy)))


@traceable_by(_traced_solve_ex)
def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> SolveExResult:
    """`solve` that reports a singular matrix in `info` (the 1-based position of a zero pivot; 0 is none).

    As `torch.linalg.solve_ex`. If a strategy refuses a matrix, the whole batch is PyTorch's.

    Args:
        A: (..., n, n).
        B: as in `solve`.
        left: as in `solve`.
        check_errors: raise where a matrix is singular.
        strategy: as in `solve`.

    Returns:
        X as in `solve`, and info, int32 (...) as A has batch dimensions. Where info is not zero, X is not
        finite.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular and `check_errors` is set.
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> solve_ex(torch.tensor([[2.0]]), torch.tensor([4.0])).result
        tensor([2.])
    """
    fast_path = _CHECKED_FAST_PATH if check_errors else _FAST_PATH_EX
    if left and (outputs := fast_path(strategy, A, B)) is not None:
        return SolveExResult._make(outputs)
    if are_matrices(A, square=True) and are_of_kind(A, B):
        try:
            return SolveExResult(solve(A, B, left=left, strategy=strategy), none_singular(A))
        except LinAlgError:
            pass
    return SolveExResult._make(torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors))


def _by_fast_path(strategy: StrategyChoice, A: Tensor, B: Tensor, left: bool) -> Tensor | None:
    if left and (outputs := _FAST_PATH(strategy, A, B)) is not None:
        return outputs[0]
    if not fit(A, B, left) or is_vector(A, B):
        return None
    if not left:
        X = _by_fast_path(strategy, A.mT, B.mT, True)
        return None if X is None else X.mT
    if A.shape[:-2] == B.shape[:-2]:
        return None
    columns, restored = folded(A, B)
    outputs = _FAST_PATH(strategy, A, columns)
    return None if outputs is None else restored(outputs[0])


def _general(candidates: tuple[Strategy, ...], A: Tensor, B: Tensor) -> Tensors:
    return (first_that_can(candidates, lambda chosen: _solve(chosen, A, B, True)),)


_explicit_by_columns = with_normalized_cotangents(_Solve().explicit)


def _explicit(
    strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    if outputs[0].ndim == cast(Tensor, inputs[0]).ndim:
        return _explicit_by_columns(strategy, inputs, outputs, cotangents)
    columns = map(as_columns, (outputs[:1], cotangents))
    of_matrix, of_rhs = _explicit_by_columns(strategy, inputs, *columns)
    return of_matrix, of_rhs.squeeze(-1)


def _tangents(computed: Computed, tangents: Gradients) -> Tensors:
    (A, _), X, (of_matrix, of_rhs) = computed.inputs, computed.outputs[0], tangents
    if are_vectors := X.ndim < A.ndim:
        X, of_rhs = as_columns((X, of_rhs))
    of_X = _solved(computed, formula.rhs_tangent(X, of_matrix, of_rhs))
    return (of_X.squeeze(-1) if are_vectors else of_X,)


def _solved(computed: Computed, rhs: Tensor) -> Tensor:
    """A⁻¹ times columns, by the factors that were kept, if they were."""
    if factors := computed.factors:
        LU, pivots = factors
        return lu_solve(LU.mT, pivots, rhs)
    return _solution(computed.strategy, computed.inputs[0], rhs)


def _second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    if computed.outputs[0].ndim == computed.inputs[0].ndim:
        return _second_by_columns(computed, gradients, cotangents, directions)
    second = _second_by_columns(
        computed._replace(outputs=as_columns(computed.outputs)),
        (gradients[0], *as_columns(gradients[1:])),
        as_columns(cotangents),
        (directions[0], *as_columns(directions[1:])),
    )
    return second and (second[0], as_vectors(second[1]), as_vectors(second[2]))


@with_normalized_directions
def _second_by_columns(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    X, rhs_gradient, (of_A, of_B) = computed.outputs[0], only(gradients[1:]), directions
    of_cotangent = _solved(computed, formula.rhs_tangent(X, of_A, of_B))
    of_X = None if of_A is None else -of_A.mH @ rhs_gradient
    of_A = -rhs_gradient @ of_cotangent.mH
    return (of_A, None), (of_X,), (of_cotangent, *cotangents[1:])


_FAST_PATH = FastPath(
    "solve",
    _general,
    policy_operation="solve",
    any_rank=True,
    explicit=_explicit,
    tangents=_tangents,
    second_backward=_second_backward,
    unread=(1,),
    arity=2,
)
_FAST_PATH_EX = dataclasses.replace(_FAST_PATH, operation="solve_ex", unread_outputs=(1,))
_CHECKED_FAST_PATH = dataclasses.replace(_FAST_PATH, reports=True)


def _workspace(_: int, n: int, __: int) -> tuple[int, int]:
    """The factors and the order of rows of n×n matrices, as `Operator` takes it."""
    return n * n, n


_OPERATOR = Operator(
    "solve",
    ["A", "B"],
    any_rank=True,
    takes_vectors=True,
    fast_paths=[(_FAST_PATH, [])],
    workspace=_workspace,
)
_OPERATOR_EX = Operator(
    "solve_ex",
    ["A", "B"],
    "bool left, bool check_errors",
    outputs=2,
    measured_as="solve",
    any_rank=True,
    takes_vectors=True,
    fast_paths=[(_FAST_PATH_EX, [True, False]), (_CHECKED_FAST_PATH, [True, True])],
    workspace=_workspace,
)

ATEN = (
    AtenCalls("linalg_solve", _FAST_PATH, [True], by_columns=(0,)),
    AtenCalls("linalg_solve_ex", _FAST_PATH_EX, [True, False], returned=(0, 1), by_columns=(0,)),
    AtenCalls(
        "linalg_solve_ex", _CHECKED_FAST_PATH, [True, True], returned=(0, 1), by_columns=(0,)
    ),
)


def _solve(chosen: Strategy, A: Tensor, B: Tensor, left: bool) -> Tensor:
    are_vectors = not chosen.forward_is_differentiable and is_vector(A, B)
    fits = left and B.shape[-1] == A.shape[-1] if are_vectors else fit(A, B, left)
    if chosen.forward_is_differentiable or not fits:
        return torch.linalg.solve(A, B, left=left)
    rhs = B.unsqueeze(-1) if are_vectors else B
    if not left:
        return _solve(chosen, A.mT, rhs.mT, True).mT
    X = for_each_matrix(lambda A, B: run(_Solve(), chosen, A, B)[0], A, rhs)
    return X.squeeze(-1) if are_vectors else X


RECORDS = (
    Operation(
        name="solve",
        function=solve,
        exact=lambda problem: exact("square").solve_gradient(*problem.operands),
        exact_result=lambda problem: exact("square").solve_result(problem),
        falls_back=True,
        cells=grids.SOLVE,
        arity=2,
        square=True,
        needs_full_rank=True,
    ),
)
