"""Wrong about what counts as zero, or about matrices of a batch that differ in it."""

import dataclasses

import torch

from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from zoo.register import Sound, caught_by, spoils

# Of a batch.


@spoils("factor_tall", "mixed ranks in a batch", of=SVDTruncatedPinv)
def flags_of_the_largest_rank(inverse, matrix, **_):
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


# Tolerances.


def cuts(name, check, tolerances):
    """A truncated SVD with other tolerances: what the function makes of the matrix, rtol and atol."""

    class Cuts(SVDTruncatedPinv):
        def factor_tall(self, matrix, *, rtol, atol):
            rtol, atol = tolerances(matrix, rtol, atol)
            return super().factor_tall(matrix, rtol=rtol, atol=atol)

    Cuts.__name__ = name
    caught_by(check)(Cuts)


def _by_columns(A, rtol, atol):
    is_default = rtol is None and atol is None
    return (A.shape[-1] * torch.finfo(A.dtype).eps if is_default else rtol), atol


def _at_the_root_of_roundoff(A, rtol, atol):
    is_default = rtol is None and atol is None and A.dtype.to_real() is torch.float64
    return (1e-12 if is_default else rtol), atol


def _beside_atol(A, rtol, atol):
    return (max(A.shape[-2:]) * torch.finfo(A.dtype).eps if rtol is None else rtol), atol


cuts("never_cuts", "rank-deficient pinv", lambda *_: (0.0, 0.0))
cuts("ignores_tolerances", "tolerances", lambda *_: (None, None))
cuts("cuts_too_early", "accuracy class of pinv", lambda _, r, a: (1e-3 if r is None else r, a))
cuts("cuts_absolutely", "scales of factors", lambda _, r, a: (r, 1e-12 if a is None else a))
cuts("counts_columns_only", "default tolerance", _by_columns)
cuts("cuts_at_the_root_of_roundoff", "default tolerance", _at_the_root_of_roundoff)
cuts("keeps_the_default_beside_atol", "atol alone", _beside_atol)


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


# Singular values.


def _showing(inverse, values):
    core = dataclasses.replace(inverse.core, all_singular_values=values)
    return dataclasses.replace(inverse, core=core)


@spoils("factor_tall", "singular values", of=SVDTruncatedPinv)
def shows_them_ascending(inverse, *_, **__):
    return _showing(inverse, inverse.core.all_singular_values.flip(-1))


@spoils("factor_tall", "singular values", of=SVDTruncatedPinv)
def shows_those_that_count(inverse, *_, **__):
    values = inverse.core.all_singular_values
    return _showing(inverse, values * (torch.arange(values.shape[-1]) < inverse.rank.unsqueeze(-1)))


# NaN.


@spoils("lu_backward", "not a number")
def nan_is_clipped_in_the_gradient(gradient, *_):
    return gradient.nan_to_num()


# need_matrix=False.


@caught_by("gradient of B alone in lstsq")
class ComputesWhatIsNotNeeded(Sound):
    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        return super().lstsq_backward(saved, cotangent)


@spoils("lstsq_backward", "gradient of B alone in lstsq")
def other_b_of_wide_ones(gradients, saved, _, *, need_matrix=True):
    matrix, rhs = gradients
    m, n = saved.matrix.shape[-2:]
    return matrix, -rhs if m < n and not need_matrix else rhs
