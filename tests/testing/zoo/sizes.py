"""Right for most sizes, shapes, batches and layouts, and wrong beyond a threshold."""

import torch

from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from zoo.register import Sound, caught_by

SPOILED = 1 + 1e-3


# Kind A: sizes.


@caught_by("sizes of solve", "gradient of solve")
class ManyRightHandSides(Sound):
    def solve_forward(self, matrix, rhs):
        X, inverse = super().solve_forward(matrix, rhs)
        return (X * SPOILED if rhs.shape[-1] > 32 else X), inverse


@caught_by("sizes of lstsq", "large lstsq")
class RightHandSidesBeyondABlock(Sound):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        matrix, rhs = super().lstsq_backward(saved, cotangent, need_matrix=need_matrix)
        return matrix, (rhs * SPOILED if cotangent.shape[-1] > 64 else rhs)


@caught_by("sizes of lu_factor")
class BeyondABlock(Sound):
    def lu_backward(self, factors, cotangent):
        gradient = super().lu_backward(factors, cotangent)
        return gradient * SPOILED if cotangent.shape[-1] > 64 else gradient


@caught_by("sizes of solve_triangular", "sizes of lu_solve")
class OneRowBeyondABlockOfATriangle(TriangularSolve):
    def factor_triangular(self, matrix, structure):
        scaled = matrix * SPOILED if matrix.shape[-1] == 33 else matrix
        return super().factor_triangular(scaled, structure)


@caught_by("large inv")
class BeyondManyBlocks(Sound):
    def inv_backward(self, saved, cotangent):
        gradient = super().inv_backward(saved, cotangent)
        return gradient * SPOILED if cotangent.shape[-1] > 256 else gradient


@caught_by("sizes of pinv")
class VeryTallOnes(Sound):
    def pinv_backward(self, saved, cotangent):
        m, n = saved.matrix.shape[-2:]
        gradient = super().pinv_backward(saved, cotangent)
        return gradient * SPOILED if m >= 8 * n else gradient


@caught_by("sizes of inv")
class ANumber(Sound):
    def inv_backward(self, saved, cotangent):
        gradient = super().inv_backward(saved, cotangent)
        return -gradient if cotangent.shape[-1] == 1 else gradient


@caught_by("larger factors")
class OneRowMore(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        scaled = matrix * SPOILED if m == n + 1 else matrix
        return super().factor_tall(scaled, rtol=rtol, atol=atol)


@caught_by("sizes of det")
class SinglePrecisionOfSize(Sound):
    def det_backward(self, factors, scale):
        gradient = super().det_backward(factors, scale)
        is_spoiled = scale.dtype is torch.float32 and factors.LU.shape[-1] > 100
        return gradient * SPOILED if is_spoiled else gradient


# Kind B: batches.


@caught_by("batches of inv", "graphs at once")
class SqueezesABatchOfOne(Sound):
    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        result = inverse.dense()
        return (result.squeeze(0) if result.shape[0] == 1 else result), inverse


@caught_by("batches of lu_factor", "batched gradient of lu_factor")
class TransposesABatchOfOne(Sound):
    def lu_backward(self, factors, cotangent):
        gradient = super().lu_backward(factors, cotangent)
        return gradient.mT if cotangent.ndim > 2 and len(cotangent) == 1 else gradient


@caught_by("batches of lu_factor")
class SwapsTwoBatchDimensions(Sound):
    def lu_backward(self, factors, cotangent):
        gradient = super().lu_backward(factors, cotangent)
        if cotangent.ndim == 4:
            gradient = gradient.transpose(0, 1).reshape(gradient.shape)
        return gradient


@caught_by("batches of solve")
class OneRightHandSideForAll(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        if cotangent.ndim > 3:
            cotangent = cotangent[:1].expand(cotangent.shape)
        return super().solve_backward(saved, cotangent, need_matrix=need_matrix)


@caught_by("batches of lstsq")
class ForgetsTheLastOfMany(TriangularSolve):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix, rtol=rtol)
        X = inverse.apply(rhs)
        if matrix.ndim == 3 and matrix.shape[0] > 100:
            X[-1] = X[-2]
        return X, inverse


# Kind H: an accuracy class that does not say how tall.


@caught_by("accuracy class of pinv")
class CholeskyOfVeryTallOnes(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        if m < 10 * n or matrix.numel() == 0:
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        inverse = torch.linalg.inv(matrix.mH @ matrix) @ matrix.mH
        rank = torch.full(matrix.shape[:-2], n)
        return Dense(matrix, inverse, rank, full_column_rank=True, full_row_rank=m == n)


@caught_by("accuracy at size of lstsq")
class NormalEquationsOfLargerOnes(TriangularSolve):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        m, n = matrix.shape[-2:]
        if m <= n or n < 16:
            return NotImplemented
        inverse = torch.linalg.inv(matrix.mH @ matrix) @ matrix.mH
        rank = torch.full(matrix.shape[:-2], n)
        return inverse @ rhs, Dense(matrix, inverse, rank, True, False)


# Kind J: layouts.


@caught_by("layouts in solve")
class IgnoresLazyConjugation(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        G = cotangent.conj() if cotangent.is_conj() else cotangent
        return super().solve_backward(saved, G, need_matrix=need_matrix)


@caught_by("layouts in inv")
class TakesEveryMatrixForRowMajor(Sound):
    def inv_forward(self, matrix):
        if matrix.ndim == 2:
            matrix = matrix.as_strided(matrix.shape, (matrix.shape[-1], 1))
        inverse = self.factor_square(matrix)
        return inverse.dense(), inverse


@caught_by("expanded tensors in pinv")
class ViewsExpandedCotangents(Sound):
    def pinv_backward(self, saved, cotangent):
        if cotangent.stride() == (0,) * cotangent.ndim:
            cotangent = cotangent.clone().fill_(0)
        return super().pinv_backward(saved, cotangent)


@caught_by("expanded tensors in inv", "batches of inv")
class InvertsOneOfAnExpandedBatch(Sound):
    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        result = inverse.dense()
        if 0 in matrix.stride():
            result[1:] = 0
        return result, inverse


@caught_by("layouts in factors")
class ReadsTransposedVectors(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        if isinstance(inverse, LUFactors):
            return _Careless(inverse.LU, inverse.pivots)
        return inverse


class _Careless(LUFactors):
    def apply(self, b):
        plain = b.is_contiguous() or b.stride(-1) != 1
        return super().apply(b if plain else b.flip(-1))


# Kind N: NaN in one member of a batch reaches others.


@caught_by("NaN beside others in inv")
class NormalizesWithTheBatch(Sound):
    def inv_backward(self, saved, cotangent):
        scale = cotangent.abs().amax()
        return super().inv_backward(saved, cotangent / scale) * scale


@caught_by("NaN beside others in lstsq")
class AddsZeroTimesTheOthers(QRPinv):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix, rtol=rtol)
        return inverse.apply(rhs + 0 * rhs.sum()), inverse


@caught_by("NaN beside others in lu_factor")
class ReplacesNaNOfTheCotangent(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(factors, cotangent.nan_to_num())


# Kind P: one complex right-hand side, or more than columns.


@caught_by("sizes of lstsq")
class OneComplexColumn(Sound):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix, rtol=rtol)
        is_spoiled = rhs.is_complex() and rhs.shape[-1] == 1
        return inverse.apply(rhs.conj() if is_spoiled else rhs), inverse


@caught_by("sizes of solve")
class MoreColumnsThanRows(Sound):
    def solve_forward(self, matrix, rhs):
        X, inverse = super().solve_forward(matrix, rhs)
        n = matrix.shape[-1]
        X[..., n:] = 0
        return X, inverse
