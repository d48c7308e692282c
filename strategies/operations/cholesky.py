"""`cholesky` and `cholesky_ex`, of Hermitian positive definite matrices."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import is_forward_alone, run
from strategies.autograd.operators import Operator
from strategies.autograd.quadratic import pull, push
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import raise_for_info
from strategies.formulas import cholesky as formula
from strategies.formulas.domains import POSITIVE_DEFINITE
from strategies.formulas.matrices import nan_where
from strategies.operations import grids
from strategies.operations.record import Operation, exact
from strategies.operations.results import CholeskyExResult
from strategies.operations.scaled_rule import (
    are_in_safe_range,
    is_in_safe_range,
    normalize,
    times_power_of_two,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["CholeskyExResult", "cholesky", "cholesky_ex"]


# Looked up once: what a program puts in its place meanwhile, to count its calls, is not given ours.
_cholesky_ex = torch.linalg.cholesky_ex

_NOT_DEFINITE = (
    "The factorization could not be completed because the input is not positive-definite (the leading "
    "minor of order {0} is not positive-definite)."
)


_EQUATION = formula.Equation()


def _backward(strategy: Strategy, L: Tensor, cotangent: Tensor) -> Tensor:
    return formula.backward(strategy.factor_triangular, L, cotangent)


@dataclass(frozen=True)
class _Cholesky(Rule):
    """Outputs: the lower triangular factor, info."""

    name = "cholesky"
    unread_inputs = (0,)

    check_errors: bool = True

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        L, info = _cholesky_ex(inputs[0])
        if self.check_errors:  # here and not by the caller, who under `vmap` cannot see values
            raise_for_info(info, _NOT_DEFINITE)
        return (L, info), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        (L, info), (cotangent,) = saved.outputs, cotangents
        is_in_range = _factor_is_in_safe_range(L) and is_in_safe_range(cotangent)
        if not is_in_range:
            (L, cotangent), (of_L, of_cotangent) = normalize((L, cotangent))
        gradient = strategy.own("cholesky_backward", _backward, L, cotangent)
        if not is_in_range:
            gradient = times_power_of_two(gradient, of_cotangent - of_L)
        return (nan_where(info != 0, gradient) if bool(info.any()) else gradient,)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        L, info = at.outputs
        return (nan_where(info != 0, pull(_EQUATION, L, cotangents[0])),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        L, info = at.outputs
        return (nan_where(info != 0, push(_EQUATION, L, only(tangents))),)


def _factor_is_in_safe_range(L: Tensor) -> bool:
    """Whether the trace of each A = L Lᴴ, which is the square of the norm of L, is not far from one."""
    return are_in_safe_range(torch.linalg.vector_norm(L, dim=(-2, -1)).square())


def _traced_cholesky(
    A: Tensor, *, upper: bool = False, strategy: StrategyChoice = "auto"
) -> Tensor:
    if not are_matrices(A, square=True):
        return torch.linalg.cholesky(A, upper=upper)
    return _traced_cholesky_ex(A, upper=upper, check_errors=True, strategy=strategy).L


@traceable_by(_traced_cholesky)
def cholesky(A: Tensor, *, upper: bool = False, strategy: StrategyChoice = "auto") -> Tensor:
    """The lower triangular L with A = L Lᴴ and a positive diagonal, of each matrix of a batch.

    As `torch.linalg.cholesky`: one triangle of A is read, and the gradient is Hermitian.

    Args:
        A: (..., n, n), Hermitian positive definite; float32, float64, complex64 or
            complex128, or float16 or bfloat16, computed in float32.
        upper: the upper triangle is read, and the result is U = Lᴴ, with A = Uᴴ U.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        L or U, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: a matrix is not positive definite.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> cholesky(torch.tensor([[4.0]]), strategy="blocked_lu")
        tensor([[2.]])
    """
    if (outputs := _by_fast_path(_fast_path, strategy, A, upper)) is not None:
        return outputs[0]
    (chosen,) = choose(strategy, "cholesky", A, square=True)
    if chosen.forward_is_differentiable:
        return torch.linalg.cholesky(A, upper=upper)
    return _factor(chosen, A, upper, check_errors=True)[0]


def _traced_cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> CholeskyExResult:
    if not are_matrices(A, square=True):
        return CholeskyExResult(
            *torch.linalg.cholesky_ex(A, upper=upper, check_errors=check_errors)
        )
    L, info = _OPERATOR(A.mT if upper else A, check_errors, name_of(strategy))
    return CholeskyExResult(L.mT if upper else L, info)


@traceable_by(_traced_cholesky_ex)
def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> CholeskyExResult:
    """`cholesky` that reports in `info` where a matrix is not positive definite.

    As `torch.linalg.cholesky_ex`. The gradient of a matrix that is not positive definite is NaN.

    Args:
        A: as in `cholesky`.
        upper: as in `cholesky`.
        check_errors: raise as `cholesky` does.
        strategy: as in `cholesky`.

    Returns:
        L or U, and info, int32 (...): 0, or the order of the first leading minor that is not positive
        definite, where L is incomplete, and may be NaN from that row on.

    Raises:
        torch.linalg.LinAlgError: a matrix is not positive definite and `check_errors` is set.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> cholesky_ex(-torch.eye(2), strategy="triangular_solve").info
        tensor(1, dtype=torch.int32)
    """
    fast_path = _checked_fast_path if check_errors else _fast_path_ex
    if (outputs := _by_fast_path(fast_path, strategy, A, upper)) is not None:
        return CholeskyExResult._make(outputs)
    if not is_forward_alone(strategy, A):
        (chosen,) = choose(strategy, "cholesky", A, square=True)
        if not chosen.forward_is_differentiable:
            return CholeskyExResult(*_factor(chosen, A, upper, check_errors))
    return CholeskyExResult(*_cholesky_ex(A, upper=upper, check_errors=check_errors))


def _by_fast_path(
    fast_path: FastPath, strategy: StrategyChoice, A: Tensor, upper: bool
) -> Sequence[Tensor] | None:
    if not (upper and are_matrices(A)):
        return fast_path(strategy, A)
    # The lower triangle of Aᵀ is the upper one of A.
    outputs = fast_path(strategy, A.mT)
    return None if outputs is None else (outputs[0].mT, *outputs[1:])


def _general(candidates: tuple[Strategy, ...], A: Tensor) -> Tensors:
    return _factor(candidates[0], A, upper=False, check_errors=True)[:1]


@with_normalized_cotangents
def _explicit(_: Strategy, __: Gradients, outputs: Tensors, cotangents: Tensors) -> Tensors:
    return (pull(_EQUATION, outputs[0], cotangents[0]),)


@with_normalized_directions
def _second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    (tangent,) = _tangents(computed, directions)
    of_L = -_EQUATION.second_adjoint(tangent, only(gradients))
    return (None,), (of_L,), (tangent, *cotangents[1:])


def _tangents(computed: Computed, tangents: Gradients) -> Tensors:
    return (_EQUATION.push(computed.outputs[0], only(tangents)),)


_fast_path = FastPath(
    "cholesky",
    _general,
    policy_operation="cholesky",
    explicit=_explicit,
    tangents=_tangents,
    second_backward=_second_backward,
    unread=(0,),
)
_checked_fast_path = dataclasses.replace(_fast_path, reports=True)
_fast_path_ex = dataclasses.replace(_fast_path, operation="cholesky_ex", unread_outputs=(1,))
_OPERATOR = Operator(
    "cholesky_ex",
    ["A"],
    "bool check_errors",
    outputs=2,
    measured_as="cholesky",
    by_columns=(0,),
    fast_paths=[(_fast_path_ex, [False]), (_checked_fast_path, [True])],
)

ATEN = (
    AtenCalls("linalg_cholesky", _fast_path, [False]),
    AtenCalls("linalg_cholesky_ex", _fast_path_ex, [False, False], returned=(0, 1)),
    AtenCalls("linalg_cholesky_ex", _checked_fast_path, [False, True], returned=(0, 1)),
)


def _factor(chosen: Strategy, A: Tensor, upper: bool, check_errors: bool) -> Tensors:
    L, info = run(_Cholesky(check_errors), chosen, A.mT if upper else A)
    return (L.mT if upper else L), info


RECORDS = (
    Operation(
        name="cholesky",
        function=cholesky,
        exact=lambda problem: (exact("cholesky").cholesky_gradient(*problem.operands),),
        exact_result=lambda problem: exact("cholesky").cholesky(problem.operands[0])[:1],
        cells=grids.SQUARE,
        domain=POSITIVE_DEFINITE,
        square=True,
        needs_full_rank=True,
    ),
)
