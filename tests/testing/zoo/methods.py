"""Wrong in one operation's own forward or backward."""

import torch

from strategies.errors import UnsupportedError
from strategies.factors import PackedLU
from strategies.formulas import solve
from zoo.register import Sound, caught_by


@caught_by("sizes of solve")
class SolvesWithTheTranspose(Sound):
    def solve_forward(self, matrix, rhs):
        return super().solve_forward(matrix.mT, rhs)


@caught_by("batches of pinv")
class SideBySideInTheWrongOrder(Sound):
    def pinv_forward(self, matrix, *, rtol=None, atol=None):
        result, inverse = super().pinv_forward(matrix, rtol=rtol, atol=atol)
        return result.flip(0) if matrix.ndim > 2 else result, inverse


@caught_by("gradient of inv")
class GradientTransposed(Sound):
    def inv_backward(self, saved, cotangent):
        return super().inv_backward(saved, cotangent).mT


@caught_by("complex gradient of inv")
class DeclinesWithoutAdvice(Sound):
    def inv_backward(self, saved, cotangent):
        if cotangent.is_complex():
            raise UnsupportedError("no complex numbers here")
        return super().inv_backward(saved, cotangent)


@caught_by("complex gradient of lu_factor")
class ConjugationForgottenInBackward(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(PackedLU(factors.LU.conj(), factors.inverse_order), cotangent)


@caught_by("batched gradient of lu_factor")
class WrongOnlyInBatches(Sound):
    def lu_backward(self, factors, cotangent):
        gradient = super().lu_backward(factors, cotangent)
        return gradient.flip(0) if cotangent.ndim > 2 else gradient


@caught_by("gradient of lstsq")
class ResidualForgotten(Sound):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        return solve.backward(saved.inverse, saved.result, cotangent, need_matrix=need_matrix)


@caught_by("gradient of pinv")
class RangeTermForgotten(Sound):
    def pinv_backward(self, saved, cotangent):
        return -saved.inverse.apply_adjoint(saved.inverse.apply(cotangent.mH).mH)


@caught_by("gradient of solve")
class SignWrong(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        matrix, rhs = super().solve_backward(saved, cotangent)
        return -matrix, rhs


@caught_by("gradient of B alone in solve")
class BReadsA(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        matrix, rhs = super().solve_backward(saved, cotangent)
        return (matrix, rhs) if need_matrix else (None, torch.zeros_like(rhs))


@caught_by("gradient of B alone in solve")
class BOfOneColumnReadsA(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        matrix, rhs = super().solve_backward(saved, cotangent, need_matrix=need_matrix)
        is_read = need_matrix or cotangent.shape[-1] > 1
        return matrix, (rhs if is_read else torch.zeros_like(rhs))


@caught_by("gradient of det")
class DeterminantOfTheTranspose(Sound):
    def det_backward(self, factors, scale):
        return super().det_backward(factors, scale).mT


@caught_by("gradient of slogdet")
class RowsNotPermutedBack(Sound):
    def det_backward(self, factors, scale):
        in_place = torch.arange(factors.LU.shape[-1]).expand(factors.inverse_order.shape)
        return super().det_backward(PackedLU(factors.LU, in_place), scale)


@caught_by("empty matrices in pinv")
class NothingIsTooLittle(Sound):
    def pinv_backward(self, saved, cotangent):
        assert cotangent.abs().max() >= 0
        return super().pinv_backward(saved, cotangent)
