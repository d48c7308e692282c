"""Wrong about what counts as zero, or about matrices of a batch that differ in it."""

import dataclasses

import torch

from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from zoo.register import Sound, caught_by

# Kind C: flags and complements by the largest rank of a batch.


@caught_by("mixed ranks in a batch")
class FlagsOfTheLargestRank(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        most = int(inverse.rank.max()) if inverse.rank.numel() else matrix.shape[-1]
        return dataclasses.replace(inverse, full_column_rank=most == matrix.shape[-1])


@caught_by("mixed ranks in lstsq")
class NullSpaceOfTheFirst(QRPinv):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        ranks = saved.inverse.rank
        if not need_matrix or ranks.ndim == 0 or bool((ranks == ranks.reshape(-1)[0]).all()):
            return NotImplemented
        inverse = saved.inverse
        Z = inverse.apply_adjoint(cotangent)
        residual = saved.rhs - saved.matrix @ saved.result
        return residual @ inverse.apply(Z).mH - Z @ saved.result.mH, Z


# Kind D: tolerances of single operations.


@caught_by("tolerances of lstsq")
class LstsqForgetsRcond(SVDTruncatedPinv):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix)
        return inverse.apply(rhs), inverse


@caught_by("tolerances of pinv")
class PinvForgetsAtol(SVDTruncatedPinv):
    def pinv_forward(self, matrix, *, rtol=None, atol=None):
        inverse = self.factor(matrix, rtol=rtol)
        return inverse.dense(), inverse


@caught_by("tolerances of pinv")
class SquareOnesAreNeverRefused(TriangularSolve):
    def pinv_forward(self, matrix, *, rtol=None, atol=None):
        if matrix.shape[-1] != matrix.shape[-2]:
            return NotImplemented
        inverse = self.factor_square(matrix)
        return inverse.dense(), inverse


@caught_by("tolerances")
class WideOnesForgetTheirs(SVDTruncatedPinv):
    def factor(self, matrix, *arguments, rtol=None, atol=None):
        if matrix.shape[-2] < matrix.shape[-1]:
            rtol = atol = None
        return super().factor(matrix, *arguments, rtol=rtol, atol=atol)


# Kind E: the default.


@caught_by("default tolerance")
class CountsColumnsOnly(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        if rtol is None and atol is None:
            rtol = matrix.shape[-1] * torch.finfo(matrix.dtype).eps
        return super().factor_tall(matrix, rtol=rtol, atol=atol)


@caught_by("default tolerance")
class CutsAtTheRootOfRoundoff(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        if rtol is None and atol is None:
            rtol = 1e-12 if matrix.dtype.to_real() is torch.float64 else None
        return super().factor_tall(matrix, rtol=rtol, atol=atol)


@caught_by("atol alone")
class KeepsTheDefaultBesideAtol(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        if rtol is None:
            rtol = max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
        return super().factor_tall(matrix, rtol=rtol, atol=atol)


# Kind F: singular ones that are not the first of their batch.


@caught_by("singular matrices in inv")
class LooksAtTheFirst(TriangularSolve):
    def factor_square(self, matrix):
        LU, pivots, info = torch.linalg.lu_factor_ex(matrix)
        if info.numel() and bool(info.reshape(-1)[0]):
            return super().factor_square(matrix)
        return LUFactors(LU, pivots)


@caught_by("singular matrices in pinv")
class PinvLooksAtTheFirst(Sound):
    def pinv_forward(self, matrix, *, rtol=None, atol=None):
        first = matrix.reshape(-1, *matrix.shape[-2:])[:1]
        self.factor(first, rtol=rtol, atol=atol)
        dense = torch.linalg.pinv(matrix)
        m, n = matrix.shape[-2:]
        rank = torch.full(matrix.shape[:-2], min(m, n))
        return dense, Dense(matrix, dense, rank, m >= n, n >= m)


# Kind G: singular values.


class _Shown(SVDTruncatedPinv):
    def shown(self, values, rank):
        raise NotImplementedError

    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        values = self.shown(inverse.core.all_singular_values, inverse.rank)
        core = dataclasses.replace(inverse.core, all_singular_values=values)
        return dataclasses.replace(inverse, core=core)


@caught_by("singular values")
class ShowsThemAscending(_Shown):
    def shown(self, values, rank):
        return values.flip(-1)


@caught_by("singular values")
class ShowsThoseThatCount(_Shown):
    def shown(self, values, rank):
        return values * (torch.arange(values.shape[-1]) < rank.unsqueeze(-1))


# Kind O: NaN hidden at any rank.


@caught_by("not a number")
class NaNHasRankZero(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix.nan_to_num(), rtol=rtol, atol=atol)


@caught_by("not a number")
class NaNIsClippedInTheGradient(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(factors, cotangent).nan_to_num()


# Kind Q: need_matrix=False.


@caught_by("gradient of B alone in lstsq")
class ComputesWhatIsNotNeeded(Sound):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        return super().lstsq_backward(saved, cotangent)


@caught_by("gradient of B alone in lstsq")
class OtherBOfWideOnes(Sound):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        matrix, rhs = super().lstsq_backward(saved, cotangent, need_matrix=need_matrix)
        m, n = saved.matrix.shape[-2:]
        return matrix, -rhs if m < n and not need_matrix else rhs
