"""`lstsq`, least squares of any rank."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from strategies.autograd.fast_path import FastPath
from strategies.autograd.nodes import run
from strategies.autograd.operators import EAGER, Operator
from strategies.autograd.rule import Gradients, Tensors
from strategies.errors import UnsupportedError
from strategies.factors.preconditioned import fullness
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import lstsq as formula
from strategies.formulas.amplification import lstsq_amplification
from strategies.operations import grids, lstsq_derivatives
from strategies.operations.record import Operation, exact
from strategies.operations.results import LstsqResult
from strategies.operations.right_hand_sides import fit_rows, folded, over_columns
from strategies.operations.scaled_rule import Factored, ScaledRule, times_power_of_two
from strategies.operations.tolerances import as_numbers
from strategies.operations.traceable import traceable_by
from strategies.policy import BASELINE
from strategies.strategy import Saved, Strategy, Tolerance, normalize_tolerance

__all__ = ["LstsqResult", "lstsq"]


@dataclass(frozen=True)
class _Lstsq(ScaledRule):
    """Outputs: solution, rank, singular values (empty where not computed), whether all A have full rank.

    The last by its shape (`factors.preconditioned.fullness`).
    """

    name = "lstsq"
    arity = 2
    degrees = (-1, 1)
    over_batch = staticmethod(over_columns)
    refuses_nan = True

    rcond: Tolerance = None

    def unscale_outputs(self, outputs: Tensors, exponents: Tensor) -> Tensors:
        rank, values, full = outputs
        return rank, times_power_of_two(values.unsqueeze(-1), exponents).squeeze(-1), full

    def compute(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        A, B = inputs
        X, inverse = strategy.own("lstsq_forward", self.by_factor, A, B, rtol=self.rcond)
        return (X, inverse.rank, _singular_values(inverse, A), fullness(inverse, A)), inverse

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **tolerances: Any) -> Factored:
        A, B = inputs
        inverse = strategy.factor(A, **tolerances)
        return inverse.apply(B), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Gradients:
        A, B = saved.inputs
        X = saved.result
        return formula.backward(saved.inverse, A, B, X, cotangent, need_matrix=need_matrix)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        inverse = self._inverse(strategy, at)
        (G,) = cotangents
        matrix, rhs = formula.backward(inverse, at.matrix, at.rhs, at.result, G)
        assert matrix is not None
        return matrix, rhs

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        inverse = self._inverse(strategy, at)
        dA, dB = tangents
        return (formula.jvp(inverse, at.matrix, at.rhs, at.result, dA, dB),)

    def _inverse(self, strategy: Strategy, at: Saved) -> PseudoInverse:
        *_, full = at.outputs
        are_full = bool(full.shape[-1])
        return lstsq_derivatives.smooth_inverse(strategy, at.matrix, self.rcond, are_full=are_full)


def _singular_values(inverse: PseudoInverse, like: Tensor) -> Tensor:
    if inverse.singular_values is None:
        return like.new_empty((*like.shape[:-2], 0), dtype=like.dtype.to_real())
    return inverse.singular_values


def _traced_lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    strategy: StrategyChoice = "auto",
) -> LstsqResult:
    """Residuals are there wherever m > n, singular values nowhere: ranks are not known here."""
    is_number = rcond is None or isinstance(rcond, float | int)
    if not (is_number and are_matrices(A) and are_of_kind(A, B) and fit_rows(A, B)):
        return LstsqResult(*torch.linalg.lstsq(A, B, rcond=rcond, driver=driver))
    if driver is not None and strategy == "auto":
        strategy = BASELINE
    X, rank = _OPERATOR(A, B, rcond, driver, name_of(strategy))
    none = X.new_empty(0, dtype=X.real.dtype)
    if A.shape[-2] <= A.shape[-1]:
        return LstsqResult(X, none, rank, none)
    is_vector = B.ndim < A.ndim
    rhs, columns = (each.unsqueeze(-1) if is_vector else each for each in (B, X))
    return LstsqResult(X, (rhs - A @ columns).abs().square().sum(-2), rank, none)


@traceable_by(_traced_lstsq)
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
        A: (..., m, n), of a dtype as in `pinv`.
        B: (..., m, k), in a batch of as many dimensions, each of the same size or 1; or (..., m) with
            the batch shape of A.
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
    if driver is not None and strategy in ("auto", BASELINE):
        return LstsqResult._make(torch.linalg.lstsq(A, B, rcond=rcond, driver=driver))
    if driver is None and are_matrices(A) and (numbers := as_numbers(A, None, rcond)) is not None:
        outputs = _fast_path(strategy, A, B, *numbers)
        if outputs is None and isinstance(B, Tensor) and _are_broadcast(A, B):
            columns, results = _folded(A, B)
            outputs = _fast_path(strategy, A, columns, *numbers)
            outputs = outputs and results(*outputs)
        if outputs is not None:
            return LstsqResult._make(outputs)
    candidates = choose(strategy, "lstsq", A, B, any_rank=True)
    return first_that_can(candidates, lambda chosen: _lstsq(chosen, A, B, rcond, driver))


def _are_broadcast(A: Tensor, B: Tensor) -> bool:
    return B.ndim == A.ndim and A.shape[:-2] != B.shape[:-2] and fit_rows(A, B)


def _folded(A: Tensor, B: Tensor) -> tuple[Tensor, Callable[..., LstsqResult]]:
    """`folded`, and what makes of the results for A those that were asked for.

    What is known of A is not repeated, as in torch.
    """
    columns, restored = folded(A, B)

    def results(X: Tensor, residuals: Tensor, *others: Tensor) -> LstsqResult:
        if residuals.ndim > 1:  # if there are any
            residuals = restored(residuals.unsqueeze(-2)).squeeze(-2)
        return LstsqResult(restored(X), residuals, *others)

    return columns, results


def _general(
    candidates: tuple[Strategy, ...],
    A: Tensor,
    B: Tensor,
    _: float = 0.0,
    rcond: float | None = None,
) -> Tensors:
    return first_that_can(candidates, lambda chosen: _lstsq(chosen, A, B, rcond, None))


_fast_path = FastPath(
    "lstsq",
    _general,
    policy_operation="lstsq",
    any_rank=True,
    explicit=lstsq_derivatives.explicit,
    tangents=lstsq_derivatives.tangents,
    second_backward=lstsq_derivatives.second_backward,
    unread_outputs=(1, 3),
    arity=2,
    takes_tolerances=True,
)


def _workspace(m: int, n: int, _: int) -> tuple[int, int]:
    k = min(m, n)
    return k * (m + n + k), k


def _eagerly(
    A: Tensor, B: Tensor, rcond: float | None, driver: str | None, strategy: Strategy
) -> Tensors:
    X, _, rank, _ = EAGER["lstsq"](A, B, rcond, driver=driver, strategy=strategy)
    if rank.shape != A.shape[:-2]:  # a driver of PyTorch's for matrices of full rank
        rank = rank.new_full(A.shape[:-2], min(A.shape[-2:]))
    return X, rank


def _fake(A: Tensor, B: Tensor, _rcond: float | None, _driver: str | None) -> Tensors:
    if not fit_rows(A, B):
        raise RuntimeError(
            f"linalg.lstsq: B of shape {tuple(B.shape)} does not fit A of shape {tuple(A.shape)}"
        )
    own, n = A.shape[:-2], A.shape[-1]
    rank = A.new_empty(own, dtype=torch.int64)
    if B.ndim < A.ndim:
        return B.new_empty(*own, n), rank
    batch = torch.broadcast_shapes(own, B.shape[:-2])
    return B.new_empty(*batch, n, B.shape[-1]), rank


_OPERATOR = Operator(
    "lstsq",
    ["A", "B"],
    "float? rcond, str? driver",
    compute=_eagerly,
    fake=_fake,
    outputs=2,
    any_rank=True,
    takes_vectors=True,
    fast_paths=[(_fast_path, [float, None])],
    taken=(0, 2),
    workspace=_workspace,
)
# As by PyTorch's default driver, which computes neither residuals nor singular values.
ATEN = (AtenCalls("linalg_lstsq", _fast_path, [None, None], returned=(0, None, 2, None)),)


def _lstsq(
    chosen: Strategy, A: Tensor, B: Tensor, rcond: float | None, driver: str | None
) -> LstsqResult:
    if chosen.forward_is_differentiable or not fit_rows(A, B):
        return LstsqResult._make(torch.linalg.lstsq(A, B, rcond=rcond, driver=driver))
    if driver is not None:
        raise UnsupportedError(
            f"linalg.lstsq: strategy '{chosen.name}' has no LAPACK drivers; "
            f"driver='{driver}' needs strategy='native'"
        )
    is_vector = B.ndim < A.ndim
    rhs = B.unsqueeze(-1) if is_vector else B
    if _are_broadcast(A, rhs):
        columns, results = _folded(A, rhs)
        return results(*_lstsq(chosen, A, columns, rcond, None))
    X, rank, singular_values, full = run(_Lstsq(normalize_tolerance(rcond)), chosen, A, rhs)
    residuals = X.new_empty(0, dtype=X.dtype.to_real())
    if A.shape[-2] > A.shape[-1] and full.shape[-1]:
        residuals = (rhs - A @ X).abs().square().sum(-2)
    if is_vector:
        X = X.squeeze(-1)
    if singular_values.numel() == 0:
        singular_values = singular_values.new_empty(0)
    return LstsqResult(X, residuals, rank, singular_values)


RECORDS = (
    Operation(
        name="lstsq",
        function=lstsq,
        outputs=lambda result: (result.solution,),
        output_shapes=lambda matrix, rhs: [(*matrix[:-2], matrix[-1], *rhs[len(matrix) - 1 :])],
        exact=lambda problem: exact("pinv").lstsq_gradient(*problem.operands, problem.profile),
        exact_result=lambda problem: exact("pinv").lstsq_result(problem),
        falls_back=True,
        cells=grids.LSTSQ,
        arity=2,
        truncates=True,
        amplification=lstsq_amplification,
    ),
)
