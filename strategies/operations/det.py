"""`det` and `slogdet`, through LU."""

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import StrategyChoice, are_matrices, choose, name_of
from strategies.autograd.fast_path import FastPath, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.nodes import run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Tensors, only
from strategies.factors import LUFactors
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.inverse_derivatives import derivative_of_adjugate, derivative_of_inverse
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import det as formula
from strategies.kernels.memory import is_addressable
from strategies.operations import grids
from strategies.operations.det_rules import Det, Slogdet
from strategies.operations.kept_factors import of_lu
from strategies.operations.record import Operation, exact
from strategies.operations.results import SlogdetResult
from strategies.operations.scaled_rule import is_in_safe_range
from strategies.operations.traceable import traceable_by
from strategies.strategy import Strategy

__all__ = ["SlogdetResult", "det", "slogdet"]


def _traced_det(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    if not are_matrices(A, square=True):
        return torch.linalg.det(A)
    return _DET(A, name_of(strategy))[0]


@traceable_by(_traced_det)
def det(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """The determinant of each matrix of a batch.

    As `torch.linalg.det`; all derivatives are finite and right at singular matrices, too.

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        det A, (...).

    Raises:
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> A = torch.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
        >>> det(A, strategy="triangular_solve").backward()
        >>> A.grad.round(decimals=4).tolist()
        [[4.0, -2.0], [-2.0, 1.0]]
    """
    outputs = _det_fast_path(strategy, A)
    if outputs is None:
        outputs = _general_det(choose(strategy, "det", A, square=True), A)
    return outputs[0]


def _general_det(candidates: tuple[Strategy, ...], A: Tensor) -> Tensors:
    (chosen,) = candidates
    if chosen.forward_is_differentiable:
        return (torch.linalg.det(A),)
    return run(Det(), chosen, A)[:1]


def _traced_slogdet(A: Tensor, *, strategy: StrategyChoice = "auto") -> SlogdetResult:
    if not are_matrices(A, square=True):
        return SlogdetResult(*torch.linalg.slogdet(A))
    return SlogdetResult(*_SLOGDET(A, name_of(strategy)))


@traceable_by(_traced_slogdet)
def slogdet(A: Tensor, *, strategy: StrategyChoice = "auto") -> SlogdetResult:
    """The sign and the logarithm of the absolute value of each determinant.

    As `torch.linalg.slogdet`.

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        sign, (...), of modulus 1 or 0, and logabsdet, (...), real.

    Raises:
        torch.linalg.LinAlgError: in the backward, where a matrix is singular.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> slogdet(torch.tensor([[-1.0]]), strategy="triangular_solve")
        SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    outputs = _slogdet_fast_path(strategy, A)
    if outputs is None:
        outputs = _general_slogdet(choose(strategy, "det", A, square=True), A)
    return SlogdetResult._make(outputs)


def _general_slogdet(candidates: tuple[Strategy, ...], A: Tensor) -> Tensors:
    (chosen,) = candidates
    if chosen.forward_is_differentiable:
        return tuple(torch.linalg.slogdet(A))
    return run(Slogdet(), chosen, A)[:2]


def _explicit_slogdet(
    strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    *of_sign, of_logarithm = cotangents
    of_sign = of_sign or [torch.zeros_like(of_logarithm)]  # of a real sign, which is not read
    none_is_hard = of_logarithm.new_empty(*of_logarithm.shape, 0)  # or the plan had declined
    return Slogdet().explicit(
        strategy, inputs, (outputs[0], none_is_hard), (*of_sign, of_logarithm)
    )


def _explicit_det(
    strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors
) -> Tensors:
    """The explicit gradient, which reads in the rule's other outputs how hard the matrices are."""
    with torch.no_grad():
        computed, _ = Det().forward(strategy, only(inputs))
    return Det().explicit(strategy, inputs, (*outputs, *computed[len(outputs) :]), cotangents)


def _second_backward_of_det(
    computed: Computed, _: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    A, det, direction = computed.inputs[0], computed.outputs[0], only(directions)
    if not is_in_safe_range(direction):
        return None
    if A.shape[-1] <= 3:
        of_adjoint = formula.cofactors_along(A, direction).conj()
        of_cotangent = (formula.cofactors(A) * direction).sum((-2, -1))
    else:
        LU, pivots, mantissa, exponent = computed.factors
        # Where det A is zero, the mantissa may be that of the other pivots' product.
        factors = LU, pivots, torch.where(det == 0, 0, mantissa), exponent
        of_adjoint, of_cotangent = derivative_of_adjugate(A, *factors, direction)
    of_A = only(cotangents)[..., None, None] * of_adjoint
    return (of_A,), (None,), (of_cotangent,)


def _second_backward_of_slogdet(
    computed: Computed, _: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    A, sign, direction = computed.inputs[0], computed.outputs[0], only(directions)
    if not is_in_safe_range(direction):
        return None
    # That of a real sign is not read.
    of_sign = sign if cotangents[0] is None else cotangents[0]
    scale = formula.slogdet_scale(sign, of_sign, only(cotangents[1:]))
    LU, pivots = computed.factors
    of_adjoint, trace = derivative_of_inverse(A, LU, pivots, direction)
    of_output = formula.slogdet_tangents(-of_sign, trace)[0]
    tangents = formula.slogdet_tangents(sign, trace)
    return (scale[..., None, None] * of_adjoint,), (of_output, None), tangents


def _det_tangents(computed: Computed, tangents: Gradients) -> Tensors | None:
    tangent, det = only(tangents), computed.outputs[0]
    inverse: PseudoInverse
    if factors := computed.factors:
        inverse = of_lu(*factors[:2])
    else:
        LU, pivots, _ = lu_factor_ex(computed.inputs[0])
        diagonal = LU.diagonal(dim1=-2, dim2=-1)
        inverse = LUFactors(LU, pivots)
        det = formula.permutation_sign(LU, pivots) * diagonal.prod(-1)
    # As for slogdet. The factors, which are exact for a matrix nearby, make both of det A tr(A⁻¹ dA).
    moved = det * inverse.apply(tangent).diagonal(dim1=-2, dim2=-1).sum(-1)
    # Where det is zero, too, the plan has what the adjugate is from, and the factors no inverse.
    is_right = (moved / det).isfinite()
    if is_addressable(moved) and bool(is_right.all()):
        return (moved,)
    if (gradient := computed.gradient_of(0)) is None:
        return None
    return (torch.where(is_right, moved, (gradient.conj() * tangent).sum((-2, -1))),)


def _slogdet_tangents(computed: Computed, tangents: Gradients) -> Tensors | None:
    if not (factors := computed.factors) or bool((computed.outputs[0] == 0).any()):
        return None
    # Not by A⁻¹ as a matrix: where dA is A times a matrix, A⁻¹ A would be formed with its errors.
    trace = of_lu(*factors).solve(only(tangents)).diagonal(dim1=-2, dim2=-1).sum(-1)
    return formula.slogdet_tangents(computed.outputs[0], trace)


_det_fast_path = FastPath(
    "det",
    _general_det,
    policy_operation="det",
    explicit=_explicit_det,
    tangents=_det_tangents,
    second_backward=_second_backward_of_det,
)
_slogdet_fast_path = FastPath(
    "slogdet",
    _general_slogdet,
    policy_operation="det",
    explicit=_explicit_slogdet,
    unread_outputs=(1,),
    tangents=_slogdet_tangents,
    second_backward=_second_backward_of_slogdet,
)
_DET = Operator(
    "det", ["A"], fast_paths=[(_det_fast_path, [])], workspace=lambda _, n, __: (n * n + 1, n + 1)
)
_SLOGDET = Operator(
    "slogdet",
    ["A"],
    outputs=2,
    differentiable=2,
    measured_as="det",
    fast_paths=[(_slogdet_fast_path, [])],
    workspace=lambda _, n, __: (n * n, n),
)

ATEN = (
    AtenCalls("linalg_det", _det_fast_path),
    AtenCalls("linalg_slogdet", _slogdet_fast_path, returned=(0, 1)),
)

RECORDS = (
    Operation(
        name="det",
        function=det,
        output_shapes=lambda matrix: [matrix[:-2]],
        exact=lambda problem: (exact("square").det_gradient(*problem.operands, problem.profile),),
        exact_result=lambda problem: exact("square").det_result(problem),
        cells=grids.SQUARE,
        square=True,
    ),
    Operation(
        name="slogdet",
        function=slogdet,
        # The sign of a real determinant is constant wherever log|det| has a gradient.
        outputs=lambda result: tuple(result) if result.sign.is_complex() else (result.logabsdet,),
        output_shapes=lambda matrix: [matrix[:-2]] * 2,
        exact=lambda problem: (exact("square").slogdet_gradient(*problem.operands),),
        exact_result=lambda problem: exact("square").slogdet_result(problem),
        cells=grids.SQUARE,
        square=True,
        needs_full_rank=True,
        stem="det",
        policy_operation="det",
    ),
)
