"""`pinv`, the Moore–Penrose pseudo-inverse."""

import dataclasses
from dataclasses import dataclass
from types import NoneType
from typing import Any, Self

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, first_that_can, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import is_differentiated, run
from strategies.autograd.operators import EAGER, Operator
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.autograd.tracing import has_transforms
from strategies.builtin.triangular_solve import by_qr
from strategies.factors import Dense, DenseInverse, Triangular
from strategies.factors.preconditioned import Preconditioned, fullness
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas import pinv as formula
from strategies.formulas.values import mirrored, mirrored_values
from strategies.operations import grids
from strategies.operations.kept_factors import of_any_rank, with_full_ranks
from strategies.operations.record import Operation, exact
from strategies.operations.scaled_rule import (
    Factored,
    ScaledRule,
    times_power_of_two,
    with_normalized_cotangents,
    with_normalized_directions,
)
from strategies.operations.tolerances import as_numbers
from strategies.operations.traceable import traceable_by
from strategies.policy import BASELINE
from strategies.strategy import Saved, Strategy, Tolerance, normalize_tolerance

__all__ = ["pinv"]


@dataclass(frozen=True)
class _Pinv(ScaledRule):
    """Outputs: A⁺, and by its shape whether all A have full rank (`factors.preconditioned.fullness`)."""

    name = "pinv"
    degrees = (-1,)
    refuses_nan = True

    rtol: Tolerance = None
    atol: Tolerance = None

    def with_scaled_options(self, exponents: Tensor) -> Self:
        if self.atol is None:
            return self
        atol = torch.as_tensor(self.atol, dtype=torch.float64, device=exponents.device)
        shape = torch.broadcast_shapes(atol.shape, exponents.shape)
        scaled = times_power_of_two(atol.expand(shape)[..., None, None], exponents)
        return dataclasses.replace(self, atol=scaled[..., 0, 0])

    def compute(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        pinv, inverse = strategy.own(
            "pinv_forward", self.by_factor, *inputs, rtol=self.rtol, atol=self.atol
        )
        return (pinv, fullness(inverse, *inputs)), inverse

    def by_factor(self, strategy: Strategy, *inputs: Tensor, **tolerances: Any) -> Factored:
        inverse = strategy.factor(inputs[0], **tolerances)
        return inverse.dense(), inverse

    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Tensor:
        return formula.backward(saved.inverse, saved.matrix, cotangent)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        return (formula.backward(_inverse(at), at.matrix, *cotangents),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        return (formula.jvp(_inverse(at), at.matrix, only(tangents)),)


def _inverse(at: Saved) -> PseudoInverse:
    pinv, full = at.outputs
    return _smooth_inverse(at.matrix, pinv, are_full=bool(full.shape[-1]))


def _smooth_inverse(A: Tensor, pinv: Tensor, *, are_full: bool) -> PseudoInverse:
    """A⁺ as a differentiable function of A and A⁺."""
    if not are_full:
        return Dense.of_any_rank(A, pinv)
    return DenseInverse(pinv) if A.shape[-2] == A.shape[-1] else Preconditioned.of(A)


def _traced_pinv(
    A: Tensor,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    hermitian: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    are_tolerances = all(isinstance(each, _TOLERANCES) for each in (atol, rtol))
    if not (are_tolerances and are_matrices(A, square=hermitian)):
        return torch.linalg.pinv(A, atol=atol, rtol=rtol, hermitian=hermitian)
    _refuse_gradients_of(atol=atol, rtol=rtol)
    if rtol is None and isinstance(atol, float) and atol > 0:
        rtol = 0.0  # the default beside atol
    if hermitian and name_of(strategy) != BASELINE:
        A, hermitian = mirrored(A), False
    tolerances = (part for tolerance in (atol, rtol) for part in _number_or_tensor(tolerance))
    return _OPERATOR(A, *tolerances, hermitian, name_of(strategy))[0]


_TOLERANCES = float, int, Tensor, NoneType


def _refuse_gradients_of(**tolerances: Tolerance) -> None:
    """Raises as PyTorch does where a gradient of a tolerance is asked for: there is none."""
    for name, tolerance in tolerances.items():
        if isinstance(tolerance, Tensor) and tolerance.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"The function 'linalg_pinv' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True."
            )


def _number_or_tensor(tolerance: Tolerance) -> tuple[float | None, Tensor | None]:
    return (None, tolerance) if isinstance(tolerance, Tensor) else (tolerance, None)


@traceable_by(_traced_pinv)
def pinv(
    A: Tensor,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    hermitian: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    """The pseudo-inverse A⁺ of each matrix of a batch, differentiable at constant rank.

    As `torch.linalg.pinv`, with gradients along perturbations that keep the rank (Golub & Pereyra
    1973, eq. 4.12), repeated singular values included.

    Args:
        A: (..., m, n), float32, float64, complex64 or complex128, or float16 or bfloat16, computed in
            float32.
        atol: singular values up to atol count as zero; a float, or a tensor to broadcast with the batch.
        rtol: singular values up to rtol·σ₁ count as zero; None: max(m, n)·ε, or 0 if atol is given.
        hermitian: A is Hermitian, and only its lower triangle is read.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        A⁺, (..., n, m).

    Raises:
        torch.linalg.LinAlgError: A is rank-deficient and the strategy needs full rank.
        RuntimeError: A has fewer than two dimensions, or is not floating-point; a tolerance requires a
            gradient.

    Example:
        >>> A = torch.tensor([[3.0], [4.0]], requires_grad=True)
        >>> pinv(A, strategy="triangular_solve").sum().backward()
        >>> A.grad.round(decimals=4).flatten()
        tensor([-0.0272, -0.0496])
    """
    if hermitian:
        (chosen, *_) = choose(strategy, "pinv", A, any_rank=True, square=True)
        if chosen.forward_is_differentiable:
            return torch.linalg.pinv(A, atol=atol, rtol=rtol, hermitian=True)
        A = mirrored(A) if is_differentiated(A) else mirrored_values(A)
    _refuse_gradients_of(atol=atol, rtol=rtol)
    if are_matrices(A) and (numbers := as_numbers(A, atol, rtol)) is not None:
        if has_transforms() and (hermitian or isinstance(atol, Tensor) or isinstance(rtol, Tensor)):
            # So it is an operator's call, which keeps the factors for the gradient.
            atol, rtol = numbers or (None, None)
            return pinv(A, atol=atol, rtol=rtol, strategy=strategy)
        outputs = _fast_path(strategy, A, *numbers)
        if outputs is not None:
            return outputs[0]
    candidates = choose(strategy, "pinv", A, any_rank=True)
    is_complex = any(isinstance(each, Tensor) and each.is_complex() for each in (atol, rtol))
    if candidates[0].forward_is_differentiable or is_complex:  # which PyTorch refuses
        return torch.linalg.pinv(A, atol=atol, rtol=rtol)
    atol, rtol = normalize_tolerance(atol), normalize_tolerance(rtol)
    if A.numel() == 0:
        atol = rtol = None  # of whatever shape, as in torch
    if shapes := [each.shape for each in (atol, rtol) if isinstance(each, Tensor)]:
        A = A.expand(*torch.broadcast_shapes(A.shape[:-2], *shapes), *A.shape[-2:])
    return first_that_can(candidates, lambda chosen: _pinv(chosen, A, atol, rtol))


def _pinv(chosen: Strategy, A: Tensor, atol: Tolerance, rtol: Tolerance) -> Tensor:
    if chosen.forward_is_differentiable:
        return torch.linalg.pinv(A, atol=atol, rtol=rtol)
    return run(_Pinv(rtol, atol), chosen, A)[0]


def _general(
    candidates: tuple[Strategy, ...], A: Tensor, atol: Tolerance = None, rtol: Tolerance = None
) -> Tensors:
    return (first_that_can(candidates, lambda chosen: _pinv(chosen, A, atol, rtol)),)


@with_normalized_cotangents
def _explicit(
    _: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors, *__: float
) -> Tensors:
    (A,), (pinv,) = inputs, outputs
    assert A is not None
    # The rank is the trace of A⁺A, which projects on as many dimensions.
    ranks = (pinv.detach() * A.detach().mT).sum((-2, -1)).real
    are_full = bool((ranks > min(A.shape[-2:]) - 0.5).all())
    return (formula.backward(_smooth_inverse(A, pinv, are_full=are_full), A, *cotangents),)


def _tangents(computed: Computed, tangents: Gradients) -> Tensors:
    (A,), (pinv,), factors = computed.inputs, computed.outputs, computed.factors
    tangent, is_wide = only(tangents), A.shape[-2] < A.shape[-1]
    # A⁺ as a matrix would lose digits of a tangent in the range of A.
    if computed.kept is None:
        return (formula.jvp(computed.factored(), A, tangent),)
    if not factors:
        return (formula.jvp(DenseInverse(pinv), A, tangent),)
    is_of_any_rank = computed.found.plan.any_rank
    inverse = of_any_rank(*factors) if is_of_any_rank else by_qr(*(each.mT for each in factors))
    # The factors of wide A are those of Aᵀ.
    given = (A.mT, tangent.mT) if is_wide else (A, tangent)
    result = formula.jvp(inverse, *given)
    result = result.mT if is_wide else result
    if not is_of_any_rank:
        return (result,)

    def jvp(inverse: PseudoInverse, some: Tensor) -> Tensor:
        return formula.jvp(inverse, A[some], tangent[some])

    return (with_full_ranks(result, computed, factors[-1], jvp),)


@with_normalized_directions
def _second_backward(
    computed: Computed, _: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    X, G, direction = computed.outputs[0], only(cotangents), only(directions)
    if not computed.factors:
        of_G = formula.jvp(DenseInverse(X), computed.inputs[0], direction)
        return (-(of_G.mH @ G) @ X.mH - X.mH @ (G @ of_G.mH),), (None,), (of_G,)
    Q, R = (each.mT for each in computed.factors)
    core = Triangular(R, Structure.UPPER)
    if is_wide := G.shape[-2] > G.shape[-1]:  # the factors are those of Aᵀ
        G, direction = G.mT, direction.mT
    found = formula.second_backward(Q, core, G, direction)
    of_A, of_G = (each.mT for each in found) if is_wide else found
    return (of_A,), (None,), (of_G,)


_fast_path = FastPath(
    "pinv",
    _general,
    policy_operation="pinv",
    any_rank=True,
    explicit=_explicit,
    tangents=_tangents,
    second_backward=_second_backward,
    takes_tolerances=True,
)


def _workspace(m: int, n: int, _: int) -> tuple[int, int]:
    k = min(m, n)
    return k * (m + n + k), 1


def _eagerly(
    A: Tensor,
    atol: float | None,
    atols: Tensor | None,
    rtol: float | None,
    rtols: Tensor | None,
    hermitian: bool,
    strategy: Strategy,
) -> Tensors:
    pinv: Tensor = EAGER["pinv"](
        A,
        atol=atol if atols is None else atols,
        rtol=rtol if rtols is None else rtols,
        hermitian=hermitian,
        strategy=strategy,
    )
    return (pinv,)


def _fake(A: Tensor, *tolerances: object) -> Tensors:
    *batch, m, n = A.shape
    shapes = [each.shape for each in tolerances if isinstance(each, Tensor)]
    if shapes and A.numel():
        batch = [*torch.broadcast_shapes(tuple(batch), *shapes)]
    return (A.new_empty(*batch, n, m),)


_OPERATOR = Operator(
    "pinv",
    ["A"],
    "float? atol, Tensor? atols, float? rtol, Tensor? rtols, bool hermitian",
    compute=_eagerly,
    fake=_fake,
    any_rank=True,
    fast_paths=[(_fast_path, [float, Tensor, float, Tensor, False])],
    workspace=_workspace,
)
ATEN = (
    AtenCalls(
        "linalg_pinv.atol_rtol_tensor",
        _fast_path,
        [..., ..., False],
        takes_tolerances=True,
        by_rows=(0,),
    ),
)

RECORDS = (
    Operation(
        name="pinv",
        function=pinv,
        output_shapes=lambda matrix: [(*matrix[:-2], matrix[-1], matrix[-2])],
        exact=lambda problem: (exact("pinv").pinv_gradient(*problem.operands, problem.profile),),
        exact_result=lambda problem: (
            exact("pinv").exact_pinv(problem.operands[0], problem.profile),
        ),
        falls_back=True,
        cells=grids.PINV,
        truncates=True,
    ),
)
