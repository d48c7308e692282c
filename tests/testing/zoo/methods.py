"""Wrong in one operation's own forward or backward."""

import torch

from strategies.errors import UnsupportedError
from strategies.factors import PackedLU
from strategies.formulas import solve
from zoo.register import Sound, caught_by, spoils


@spoils("pinv_forward", "batches of pinv")
def side_by_side_in_the_wrong_order(found, matrix, **_):
    result, inverse = found
    return result.flip(0) if matrix.ndim > 2 else result, inverse


spoils("inv_backward", "gradient of inv", name="gradient_transposed")(lambda G, *_: G.mT)
spoils("det_backward", "gradient of det", name="determinant_of_the_transpose")(lambda G, *_: G.mT)


@spoils("inv_backward", "complex gradient of inv")
def declines_without_advice(gradient, *_):
    if gradient.is_complex():
        raise UnsupportedError("no complex numbers here")
    return gradient


@caught_by("complex gradient of lu_factor")
class ConjugationForgottenInBackward(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(PackedLU(factors.LU.conj(), factors.inverse_order), cotangent)


@spoils("lu_backward", "batched gradient of lu_factor")
def wrong_only_in_batches(gradient, *_):
    return gradient.flip(0) if gradient.ndim > 2 else gradient


@spoils("lstsq_backward", "gradient of lstsq")
def residual_forgotten(_, saved, cotangent, **options):
    return solve.backward(saved.inverse, saved.result, cotangent, **options)


@spoils("pinv_backward", "gradient of pinv")
def range_term_forgotten(_, saved, cotangent):
    return -saved.inverse.apply_adjoint(saved.inverse.apply(cotangent.mH).mH)


@spoils("solve_backward", "gradient of B alone in solve")
def b_of_one_column_reads_a(gradients, *_, need_matrix=True):
    matrix, rhs = gradients
    is_read = need_matrix or rhs.shape[-1] > 1
    return matrix, (rhs if is_read else torch.zeros_like(rhs))


@caught_by("gradient of slogdet")
class RowsNotPermutedBack(Sound):
    def det_backward(self, factors, scale):
        in_place = torch.arange(factors.LU.shape[-1]).expand(factors.inverse_order.shape)
        return super().det_backward(PackedLU(factors.LU, in_place), scale)


@spoils("pinv_backward", "empty matrices in pinv")
def nothing_is_too_little(gradient, _, cotangent):
    assert cotangent.abs().max() >= 0
    return gradient
