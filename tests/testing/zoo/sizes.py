"""Right for most sizes, shapes, batches and layouts, and wrong beyond a threshold."""

import torch

from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from zoo.register import Sound, caught_by, spoils

SPOILED = 1 + 1e-3

# Sizes.


@spoils("solve_forward", "sizes of solve", "gradient of solve")
def many_right_hand_sides(found, matrix, rhs):
    X, inverse = found
    return (X * SPOILED if rhs.shape[-1] > 32 else X), inverse


@spoils("lstsq_backward", "sizes of lstsq", "large lstsq")
def right_hand_sides_beyond_a_block(gradients, *_, **__):
    matrix, rhs = gradients
    return matrix, (rhs * SPOILED if rhs.shape[-1] > 64 else rhs)


@spoils("solve_forward", "sizes of solve")
def more_columns_than_rows(found, matrix, _):
    found[0][..., matrix.shape[-1] :] = 0
    return found


@spoils("lstsq_forward", "sizes of lstsq")
def one_complex_column(found, _, rhs, **__):
    X, inverse = found
    is_spoiled = rhs.is_complex() and rhs.shape[-1] == 1
    return (inverse.apply(rhs.conj()) if is_spoiled else X), inverse


def larger_where(name, method, check, is_larger):
    """A gradient that is off where the function of it says so."""
    spoils(method, check, name=name)(lambda G, *_: G * SPOILED if is_larger(G) else G)


larger_where("beyond_a_block", "lu_backward", "sizes of lu_factor", lambda G: G.shape[-1] > 64)
larger_where("beyond_many_blocks", "inv_backward", "large inv", lambda G: G.shape[-1] > 256)
larger_where("a_number", "inv_backward", "sizes of inv", lambda G: G.shape[-1] == 1)
larger_where(
    "very_tall_ones", "pinv_backward", "sizes of pinv", lambda G: G.shape[-2] >= 8 * G.shape[-1]
)
larger_where(
    "single_precision_of_size",
    "det_backward",
    "sizes of det",
    lambda G: G.dtype is torch.float32 and G.shape[-1] > 100,
)


@caught_by("sizes of solve_triangular", "sizes of lu_solve")
class OneRowBeyondABlockOfATriangle(TriangularSolve):
    def factor_triangular(self, matrix, structure):
        scaled = matrix * SPOILED if matrix.shape[-1] == 33 else matrix
        return super().factor_triangular(scaled, structure)


@caught_by("larger factors")
class OneRowMore(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        scaled = matrix * SPOILED if m == n + 1 else matrix
        return super().factor_tall(scaled, rtol=rtol, atol=atol)


# Batches.


@spoils("inv_forward", "batches of inv", "graphs at once")
def squeezes_a_batch_of_one(found, _):
    result, inverse = found
    return (result.squeeze(0) if result.shape[0] == 1 else result), inverse


@spoils("lu_backward", "batches of lu_factor", "batched gradient of lu_factor")
def transposes_a_batch_of_one(gradient, *_):
    return gradient.mT if gradient.ndim > 2 and len(gradient) == 1 else gradient


@spoils("lu_backward", "batches of lu_factor")
def swaps_two_batch_dimensions(gradient, *_):
    is_spoiled = gradient.ndim == 4
    return gradient.transpose(0, 1).reshape(gradient.shape) if is_spoiled else gradient


@caught_by("batches of solve")
class OneRightHandSideForAll(Sound):
    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        if cotangent.ndim > 3:
            cotangent = cotangent[:1].expand(cotangent.shape)
        return super().solve_backward(saved, cotangent, need_matrix=need_matrix)


@spoils("lstsq_forward", "batches of lstsq")
def forgets_the_last_of_many(found, matrix, *_, **__):
    X, inverse = found
    if matrix.ndim == 3 and matrix.shape[0] > 100:
        X[-1] = X[-2]
    return X, inverse


# An accuracy class that does not say how tall.


def _by_normal_equations(matrix):
    m, n = matrix.shape[-2:]
    inverse = torch.linalg.inv(matrix.mH @ matrix) @ matrix.mH
    rank = torch.full(matrix.shape[:-2], n)
    return Dense(matrix, inverse, rank, full_column_rank=True, full_row_rank=m == n)


@spoils("factor_tall", "accuracy class of pinv", of=TriangularSolve)
def cholesky_of_very_tall_ones(right, matrix, **_):
    m, n = matrix.shape[-2:]
    return right if m < 10 * n or matrix.numel() == 0 else _by_normal_equations(matrix)


@spoils("lstsq_forward", "accuracy at size of lstsq")
def normal_equations_of_larger_ones(right, matrix, rhs, **_):
    m, n = matrix.shape[-2:]
    if m <= n or n < 16:
        return right
    inverse = _by_normal_equations(matrix)
    return inverse.apply(rhs), inverse


# Layouts.


@caught_by("layouts in lu_factor")
class WantsContiguousFactors(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(factors, cotangent.view(-1).view(cotangent.shape))


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
        return super().inv_forward(matrix)


@spoils("pinv_backward", "expanded tensors in pinv")
def views_expanded_cotangents(gradient, _, cotangent):
    return 0 * gradient if cotangent.stride() == (0,) * cotangent.ndim else gradient


@spoils("inv_forward", "expanded tensors in inv", "batches of inv")
def inverts_one_of_an_expanded_batch(found, matrix):
    if 0 in matrix.stride():
        found[0][1:] = 0
    return found


class _Careless(LUFactors):
    def apply(self, b):
        plain = b.is_contiguous() or b.stride(-1) != 1
        return super().apply(b if plain else b.flip(-1))


@spoils("factor_tall", "layouts in factors", of=TriangularSolve)
def reads_transposed_vectors(inverse, *_, **__):
    is_lu = isinstance(inverse, LUFactors)
    return _Careless(inverse.LU, inverse.pivots) if is_lu else inverse


# NaN in one member of a batch reaches others.


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
