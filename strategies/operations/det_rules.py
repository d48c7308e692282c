"""The rules of `det` and `slogdet`, through LU, and by other factors where elimination is not accurate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.autograd.tracing import is_constant
from strategies.errors import raise_if_singular
from strategies.factors import DenseInverse, PackedLU, Triangular
from strategies.factors.determinant import NOT_FINITE, determinant
from strategies.factors.diagonalized import Diagonalized, diagonalize
from strategies.factors.elimination import inv, lu_factor_ex
from strategies.factors.nonsingular import Product
from strategies.factors.pivots import order_of
from strategies.factors.preconditioned import Preconditioned, values_of
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas import det as formula
from strategies.formulas import smooth_det
from strategies.formulas.lu import permute_rows
from strategies.formulas.matrices import identity_where, nan_where
from strategies.formulas.powers_of_two import split, times_power_of_two
from strategies.strategy import Saved, Strategy


def _backward(strategy: Strategy, factors: PackedLU, scale: Tensor) -> Tensor:
    inverse_adjoint = formula.inverse_adjoint(strategy.factor_triangular, *factors)
    return scale[..., None, None] * inverse_adjoint


@dataclass(frozen=True)
class Det(Rule):
    """Outputs: det, packed LU, inverse row order, and three more, which are empty for most batches.

    The mantissa of the determinant of LU, (..., 1), and the notes of `factors.determinant`, (..., 3),
    where one is out of range or a matrix is hard; else (..., 0). A tensor of shape (..., k, 0): up to
    k singular values of each matrix are negligible. So shapes alone tell what to do, which are known
    wherever the explicit form is traced.
    """

    name = "det"

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        (A,) = inputs
        LU, pivots, _ = lu_factor_ex(A)
        det, notes, order = determinant(A, LU, pivots)
        mantissa, kept = det.new_empty(*det.shape, 0), notes.new_empty(*det.shape, 0)
        corank = 0
        if int(notes.count_nonzero()):  # twice as fast as any()
            exponent, negligible, difficulty = notes.unbind(-1)
            hard = _is_hard(difficulty)
            corank = int(negligible.masked_fill(hard, 0).max())
            if bool((exponent != 0).logical_or_(difficulty != 0).any()):
                mantissa, kept = det.unsqueeze(-1), notes
                det = times_power_of_two(det, exponent)
            if bool(hard.any()):
                exactly = diagonalize(A[hard])
                corank = max(corank, exactly.negligible)
                det[hard] = times_power_of_two(*exactly.det())
            LU = identity_where(difficulty != 0, LU)  # which a strategy should not see
        return (det, LU, order, mantissa, kept, det.new_empty(*det.shape, corank, 0)), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        det, LU, order, mantissa, notes, _ = saved.outputs
        (cotangent,) = cotangents
        factors = PackedLU(LU, order)
        if not notes.shape[-1]:
            return (strategy.own("det_backward", _backward, factors, cotangent * det.conj()),)
        # Neither A⁻ᴴ times the cotangent nor its product with the mantissa need be in range.
        near, exponent = split(cotangent)
        scale = near * mantissa.squeeze(-1).conj()
        gradient = strategy.own("det_backward", _backward, factors, scale)
        gradient = times_power_of_two(gradient, (exponent + notes[..., 0])[..., None, None])
        of_hard = Diagonalized.adjugate_adjoint
        return (_with_hard(gradient, notes[..., 2], saved.matrix, cotangent, of_hard),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        A, (*_, notes, shape), (cotangent,) = at.matrix, at.outputs, cotangents
        if A.shape[-1] <= 3:
            return (cotangent[..., None, None] * formula.cofactors(A).conj(),)
        if notes.shape[-1] or shape.shape[-2]:
            return (smooth_det.det_gradient(A, shape.shape[-2], cotangent),)
        inverse = inv(A)
        values = values_of(inverse)
        # What divides by the smallest singular value twice cancels where that is alone.
        alone = None if values is None else smooth_det.is_nearly_of_rank_one(values)
        if alone is None or bool(alone.all()):
            return (smooth_det.det_gradient(A, 0, cotangent),)
        gradient = (cotangent * at.result.conj())[..., None, None] * inverse.mH
        if bool(alone.any()):
            of_alone = smooth_det.det_gradient(A[alone], 0, cotangent[alone])
            gradient = gradient.index_put((alone,), of_alone)
        return (gradient,)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        (gradient,) = self.explicit_backward(strategy, at, (torch.ones_like(at.result),))
        return ((gradient.conj() * only(tangents)).sum((-2, -1)),)


@dataclass(frozen=True)
class Slogdet(Rule):
    """Outputs: sign, log|det|, packed LU, inverse row order, and how hard the matrices are.

    The last are of `factors.determinant`, (..., 1); or (..., 0) where none is.
    """

    name = "slogdet"
    differentiable = 2
    unread = (1,)

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        (A,) = inputs
        LU, pivots, _ = lu_factor_ex(A)
        mantissa, notes, order = determinant(A, LU, pivots)
        kept = notes.new_empty(*mantissa.shape, 0)
        if not int(notes.count_nonzero()):
            return (mantissa.sgn(), mantissa.abs().log(), LU, order, kept), None
        exponent, _, difficulty = notes.unbind(-1)
        if bool(difficulty.any()):
            kept, LU = difficulty.unsqueeze(-1), identity_where(difficulty != 0, LU)
            hard = _is_hard(difficulty)
            if bool(hard.any()):
                mantissa[hard], exponent[hard] = diagonalize(A[hard]).det()
        mantissa, more = split(mantissa)
        modulus = mantissa.abs()
        logabsdet = modulus.log() + (exponent + more).to(modulus.dtype) * math.log(2)
        return (mantissa.sgn(), logabsdet, LU, order, kept), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        sign, _, LU, order, difficulty = saved.outputs
        is_singular = sign == 0
        if bool(is_singular.any()):  # or NaN, whose sign is zero in torch
            is_singular &= difficulty.squeeze(-1) != NOT_FINITE
            raise_if_singular(is_singular, strategy.name, "log|det| has no gradient there; det has")
        scale = formula.slogdet_scale(sign, *cotangents)
        gradient = strategy.own("det_backward", _backward, PackedLU(LU, order), scale)
        if difficulty.shape[-1]:
            of_hard = Diagonalized.inverse_adjoint
            gradient = _with_hard(gradient, difficulty.squeeze(-1), saved.matrix, scale, of_hard)
        return (gradient,)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        scale = formula.slogdet_scale(at.result, *cotangents)
        return (scale[..., None, None] * self._inverse(at).dense().mH,)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        *_, LU, order, difficulty = at.outputs
        tangent = only(tangents)
        inverse: PseudoInverse
        if is_constant(at.matrix, tangent) and not difficulty.shape[-1]:
            inverse = Product(Triangular(LU, Structure.UNIT_LOWER), Triangular(LU, Structure.UPPER))
            tangent = permute_rows(tangent, order_of(order))
        else:
            inverse = self._inverse(at)
        # Not by A⁻¹ as a matrix: where dA is A times a matrix, A⁻¹ A would be formed with its errors.
        trace = inverse.apply(tangent).diagonal(dim1=-2, dim2=-1).sum(-1)
        return formula.slogdet_tangents(at.result, trace)

    def _inverse(self, at: Saved) -> PseudoInverse:
        """A⁻¹ as a differentiable function of A."""
        *_, difficulty = at.outputs
        if difficulty.shape[-1]:
            return DenseInverse(smooth_det.inverse(at.matrix))
        return Preconditioned.of(at.matrix)


def _is_hard(difficulty: Tensor) -> Tensor:
    return (difficulty != 0) & (difficulty != NOT_FINITE)


def _with_hard(
    gradient: Tensor,
    difficulty: Tensor,
    A: Tensor,
    scale: Tensor,
    of_hard: Callable[[Diagonalized, Tensor], Tensor],
) -> Tensor:
    """The gradient with those of the hard matrices put in, and NaN where one is not finite."""
    hard = _is_hard(difficulty)
    if bool(hard.any()):
        gradient[hard] = of_hard(diagonalize(A[hard]), scale[hard])
    return nan_where(difficulty == NOT_FINITE, gradient)
