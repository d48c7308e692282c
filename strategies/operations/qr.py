"""`qr`, of matrices of full rank: square, tall and wide, with the whole basis too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

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
from strategies.autograd.nodes import is_differentiated, is_forward_alone, run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import raise_if_singular
from strategies.factors import Triangular
from strategies.factors.condition import smallest_of_LU
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.pseudo_inverse import Structure
from strategies.factors.rank_guards import noise_level
from strategies.formulas import qr as formula
from strategies.formulas.matrices import first_columns, first_rows
from strategies.operations.results import QRResult
from strategies.operations.scaled_rule import with_normalized_cotangents, with_normalized_directions
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["QRResult", "qr"]

RECORDS = ()

_MODES = "reduced", "complete", "r"


@dataclass(frozen=True)
class _QR(Rule):
    name = "qr"
    differentiable = 2
    unread_inputs = (0,)

    mode: str

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        return tuple(torch.linalg.qr(*inputs, mode=self.mode)), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        Q, R = self._reduced(saved)
        _refuse_dependent_columns(Q, R, strategy.name)
        Q_bar, R_bar = self._cotangents(Q, cotangents, strategy.name)
        inverse = strategy.factor_triangular(formula.divisor(Q, R), Structure.UPPER)
        return (formula.backward(inverse, Q, R, Q_bar, R_bar),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        Q, R = self._reduced(at)
        inverse = Triangular(formula.divisor(Q, R), Structure.UPPER)
        return (formula.backward(inverse, Q, R, *self._cotangents(Q, cotangents)),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        Q, R = self._reduced(at)
        m, k = Q.shape[-2:]
        inverse = Triangular(formula.divisor(Q, R), Structure.UPPER)
        of_Q, of_R = formula.jvp(inverse, Q, R, only(tangents))
        if self.mode != "complete" or m == k:
            return of_Q, of_R
        below = of_R.new_zeros(*of_R.shape[:-2], m - k, of_R.shape[-1])
        of_complement = formula.complement_jvp(Q, of_Q)
        return torch.cat([of_Q, of_complement], dim=-1), torch.cat([of_R, below], dim=-2)

    def _reduced(self, at: Saved) -> tuple[Tensor, Tensor]:
        Q, R = at.outputs
        k = min(Q.shape[-2], R.shape[-1])
        return first_columns(Q, k), first_rows(R, k)

    def _cotangents(
        self, Q: Tensor, cotangents: Tensors, refuse_as: str = ""
    ) -> tuple[Tensor, Tensor]:
        """Those of Q and R in the reduced form; that of the complement is a function of Q."""
        Q_bar, R_bar = cotangents
        k = Q.shape[-1]
        more = Q_bar.shape[-1] - k
        if not more:
            return Q_bar, R_bar
        of_complement = Q_bar.narrow(-1, k, more)
        if refuse_as:
            if not of_complement.any():
                return first_columns(Q_bar, k), first_rows(R_bar, k)
            _refuse_missing_reflections(Q, refuse_as)
        added = formula.complement_backward(Q, of_complement)
        return first_columns(Q_bar, k) + added, first_rows(R_bar, k)


def _refuse_dependent_columns(Q: Tensor, R: Tensor, strategy: str) -> None:
    """Rⱼⱼ is the distance of column j from the span of those before it."""
    R = first_columns(R, formula.independent_columns(Q))
    largest = R.abs().amax(-2, keepdim=True) if R.numel() else R.real
    near = R / torch.where(largest > 0, largest, 1)  # squares of R may be out of range
    distances, norms = near.diagonal(dim1=-2, dim2=-1).abs(), torch.linalg.vector_norm(near, dim=-2)
    raise_if_singular(
        (distances <= noise_level(R) * norms).any(-1),
        strategy,
        "where the first min(m, n) columns are dependent, QR has no gradient, and pinv and lstsq have",
    )


def _refuse_missing_reflections(Q: Tensor, strategy: str) -> None:
    """Q₁₁ − I is triangular of pivots of modulus one to two, up to a unit lower factor, or singular."""
    n = Q.shape[-1]
    if Q.numel():
        identity = torch.eye(n, dtype=Q.dtype, device=Q.device)
        LU, pivots, _ = lu_factor_ex(Q[..., :n, :] - identity)
        raise_if_singular(
            ~(smallest_of_LU(LU, pivots) > noise_level(Q)),
            strategy,
            "a column is zero below the diagonal, where reflectors jump: mode 'complete' has a gradient "
            "there for losses of the first n columns of Q and of R alone",
        )


def _traced_qr(A: Tensor, mode: str = "reduced", *, strategy: StrategyChoice = "auto") -> QRResult:
    if not are_matrices(A) or mode not in _MODES:
        return QRResult(*torch.linalg.qr(A, mode))
    R_alone = mode == "r"
    Q, R = _QR_OPERATOR(A, "reduced" if R_alone else mode, name_of(strategy))
    return QRResult(A.new_empty(0) if R_alone else Q, R)


@traceable_by(_traced_qr)
def qr(A: Tensor, mode: str = "reduced", *, strategy: StrategyChoice = "auto") -> QRResult:
    """The QR factorization A = Q R, the diagonal of R real.

    As `torch.linalg.qr`, with gradients in every mode, where the first min(m, n) columns of A are
    linearly independent, or the first m − 1 of a real A with m ≤ n. PyTorch has none for R alone
    (mode "r"), and none for the complete basis of a tall matrix. The columns of that beyond the n-th are
    those that LAPACK's reflectors make. They have a gradient unless a column needs no reflection, as of a
    triangular A.

    Args:
        A: (..., m, n), of a dtype as in `pinv`.
        mode: "reduced", "complete", or "r" for R alone.
        strategy: how R is inverted in the backward: a name from `strategies.available()`, a
            `Strategy`, or "auto".

    Returns:
        Q, (..., m, k), and R, (..., k, n), where k = min(m, n); in mode "complete" k = m; in mode "r" Q
        is empty.

    Raises:
        torch.linalg.LinAlgError: in the backward, the first columns are dependent, or the loss depends on
            columns of Q that have no gradient.
        RuntimeError: A has fewer than two dimensions, or is not floating-point; or there is no such mode.

    Example:
        >>> Q, R = qr(torch.tensor([[3.0], [4.0]]))
        >>> R.abs()
        tensor([[5.]])
    """
    if mode == "reduced" and (outputs := _fast_path(strategy, A)) is not None:
        return QRResult._make(outputs)
    if (
        not is_forward_alone(strategy, A)
        and not is_left_to_torch(strategy, "qr", _is_small(A, mode))
        and mode in _MODES
        and are_matrices(A)
    ):
        candidates = choose(strategy, "qr", A)
        if not candidates[0].forward_is_differentiable:
            if mode != "r":
                return QRResult(*_general(candidates, A, mode))
            if is_differentiated(A):
                return QRResult(A.new_empty(0), _general(candidates, A)[1])
    return QRResult._make(torch.linalg.qr(A, mode))


def _general(candidates: tuple[Strategy, ...], A: Tensor, mode: str = "reduced") -> Tensors:
    return run(_QR(mode), candidates[0], A)


@with_normalized_cotangents
def _explicit(
    strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    Q, R = (each.detach() for each in outputs)
    _refuse_dependent_columns(Q, R, strategy.name)
    return _QR("reduced").explicit(strategy, inputs, outputs, cotangents)


@with_normalized_directions
def _second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    Q, R = computed.outputs
    Q_bar, R_bar = cast(Tensors, cotangents)
    of_Q, of_R, *of_cotangents = formula.second_backward(
        Triangular(formula.divisor(Q, R), Structure.UPPER),
        *(Q, R, only(gradients)),
        *(Q_bar, R_bar, only(directions)),
    )
    return (None,), (of_Q, of_R), (*of_cotangents,)


_fast_path = FastPath(
    "qr",
    _general,
    policy_operation="qr",
    otherwise="fused",
    explicit=_explicit,
    second_backward=_second_backward,
    unread=(0,),
)


_LARGE = 2**17
"""Entries of a matrix from which fewer products are faster than fewer calls, as measured."""


def _is_small(A: Tensor, mode: str) -> bool:
    """Whether calls take longer than products, and PyTorch has the gradients that are asked for."""
    if not isinstance(A, Tensor) or A.ndim < 2:
        return False
    m, n = A.shape[-2:]
    return m * n < _LARGE and (mode == "reduced" or (mode == "complete" and m <= n))


_QR_OPERATOR = Operator(
    "qr",
    ["A"],
    "str mode",
    outputs=2,
    differentiable=2,
    by_columns=(0, 1),
    fast_paths=[(_fast_path, ["reduced"])],
)
ATEN = (AtenCalls("linalg_qr", _fast_path, ["reduced"], returned=(0, 1)),)
