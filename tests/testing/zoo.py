"""Strategies that are wrong, each in one way, and the check that is meant to notice.

A sound strategy is spoiled in one place: in `factor`, in a method of the inverse, or in one
operation's backward.
"""

import dataclasses

import numpy as np
import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import UnsupportedError
from strategies.factors import Dense, LUFactors, Orthogonal
from strategies.formulas import solve
from strategies.interface import Strategy
from strategies.pseudo_inverse import Structure

ZOO: dict[type[Strategy], str] = {}


def caught_by(check):
    def register(kind):
        kind.name = "".join("_" + c.lower() if c.isupper() else c for c in kind.__name__).lstrip(
            "_"
        )
        ZOO[kind] = check
        return kind

    return register


class Spoiled(SVDTruncatedPinv):
    """A truncated SVD whose inverse is of the kind that a subclass names."""

    kind: type[Orthogonal] = Orthogonal

    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        inverse = super().factor(matrix, structure, rtol=rtol, atol=atol)
        return self.kind(*(getattr(inverse, f.name) for f in dataclasses.fields(Orthogonal)))


def spoiled(check, **methods):
    """A strategy whose inverse has the given methods in place of its own."""

    def register(kind):
        kind.kind = type("SpoiledInverse", (Orthogonal,), methods)
        return caught_by(check)(kind)

    return register


# One method of the inverse.


@spoiled("apply", apply=lambda self, b: 2 * Orthogonal.apply(self, b))
class AppliesTwice(Spoiled): ...


@spoiled("apply_adjoint", apply_adjoint=lambda self, x: self.dense().mT @ x)
class ConjugationForgotten(Spoiled): ...


@spoiled(
    "adjoint identity",
    apply_adjoint=lambda self, x: Orthogonal.apply_adjoint(self, x).conj(),
)
class AdjointOfTheWrongInverse(Spoiled): ...


@spoiled("dense", dense=lambda self: Orthogonal.dense(self).flip(-2))
class RowsInTheWrongOrder(Spoiled): ...


@spoiled("dense", dense=lambda self: Orthogonal.dense(self).mT)
class Transposed(Spoiled): ...


@spoiled("apply_gram", apply_gram=lambda self, x: self.dense() @ (self.dense().mT @ x))
class GramWithoutConjugation(Spoiled): ...


@spoiled("range_complement", range_complement=lambda self, b: torch.zeros_like(b))
class NothingOutsideTheRange(Spoiled): ...


@spoiled("null_complement", null_complement=lambda self, x: torch.zeros_like(x))
class NullSpaceForgotten(Spoiled): ...


@spoiled("to_range", to_range=lambda self, b: 2 * Orthogonal.to_range(self, b))
class RangeCoordinatesScaled(Spoiled): ...


@spoiled("from_range", from_range=lambda self, c: -Orthogonal.from_range(self, c))
class RangeBasisTurned(Spoiled): ...


@spoiled("solve", solve=lambda self, c: Orthogonal.solve(self, c.flip(-1)))
class ColumnsReversed(Spoiled): ...


@spoiled("solve_adjoint", solve_adjoint=lambda self, x: Orthogonal.solve_adjoint(self, x).conj())
class CoordinatesConjugated(Spoiled): ...


@spoiled("rank and flags", rank=property(lambda self: self.ranks + 1))
class RankOffByOne(Spoiled): ...


@caught_by("rank and flags")
class ClaimsFullRank(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        inverse = super().factor(matrix, structure, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, full_column_rank=True)


@spoiled(
    "tensors and rebuilt",
    tensors=lambda self: iter(()),
    rebuilt=lambda self, tensors, matrix: self,
)
class HidesItsTensors(Spoiled): ...


# What factor reads, cuts and refuses.


@spoiled(
    "stable gram",
    has_stable_gram=True,
    apply_gram=lambda self, x: Orthogonal.apply_gram(self, x) * (1 + 1e-6),
)
class ClaimsAStableGram(Spoiled): ...


@caught_by("triangular structures")
class ReadsTheOtherTriangle(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        return super().factor(matrix, rtol=rtol, atol=atol)


@caught_by("rank-deficient pinv")
class NeverCuts(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        return super().factor(matrix, structure, rtol=0.0, atol=0.0)


@caught_by("tolerances")
class IgnoresTolerances(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        return super().factor(matrix, structure)


@caught_by("accuracy class of pinv")
class CutsTooEarly(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        return super().factor(matrix, structure, rtol=1e-3 if rtol is None else rtol, atol=atol)


@caught_by("mixed ranks in a batch")
class OneRankForABatch(SVDTruncatedPinv):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        inverse = super().factor(matrix, structure, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, ranks=inverse.rank.max().expand(matrix.shape[:-2]))


@caught_by("rank-deficient lstsq")
class DoesNotRefuse(SVDTruncatedPinv):
    requires_full_rank = True


@caught_by("rank-deficient pinv")
class RefusesWhatItClaims(TriangularSolve):
    requires_full_rank = False


@caught_by("singular matrices refused")
class InfiniteInverse(TriangularSolve):
    def factor_square(self, matrix):
        return LUFactors(*torch.linalg.lu_factor_ex(matrix)[:2])


@caught_by("declaration")
class MustBeKnownByName(TriangularSolve):
    summary = "two\nlines"


@caught_by("complex gradient of inv")
class DeclinesWithoutAdvice(TriangularSolve):
    def inv_backward(self, inverse, cotangent):
        if cotangent.is_complex():
            raise UnsupportedError("no complex numbers here")
        return super().inv_backward(inverse, cotangent)


# One forward.


@caught_by("forwards")
class SolvesWithTheTranspose(TriangularSolve):
    def solve(self, matrix, rhs):
        return super().solve(matrix.mT, rhs)


@caught_by("forwards")
class SideBySideInTheWrongOrder(TriangularSolve):
    def pseudo_inverse(self, matrix, *, rtol=None, atol=None):
        result, inverse = super().pseudo_inverse(matrix, rtol=rtol, atol=atol)
        return result.flip(0) if matrix.ndim > 2 else result, inverse


@caught_by("inputs kept")
class OverwritesTheRightHandSide(TriangularSolve):
    def solve(self, matrix, rhs):
        X, inverse = super().solve(matrix, rhs)
        return rhs.copy_(X), inverse


# One operation's backward.


@caught_by("gradient of inv")
class GradientTransposed(TriangularSolve):
    def inv_backward(self, inverse, cotangent):
        return super().inv_backward(inverse, cotangent).mT


@caught_by("complex gradient of lu_factor")
class ConjugationForgottenInBackward(TriangularSolve):
    def lu_backward(self, LU, inverse_order, cotangent):
        return super().lu_backward(LU.conj(), inverse_order, cotangent)


@caught_by("batched gradient of lu_factor")
class WrongOnlyInBatches(TriangularSolve):
    def lu_backward(self, LU, inverse_order, cotangent):
        gradient = super().lu_backward(LU, inverse_order, cotangent)
        return gradient.flip(0) if LU.ndim > 2 else gradient


@caught_by("gradient of lstsq")
class ResidualForgotten(TriangularSolve):
    def lstsq_backward(self, inverse, matrix, rhs, solution, cotangent, *, need_matrix=True):
        return solve.backward(inverse, solution, cotangent, need_matrix=need_matrix)


@caught_by("gradient of pinv")
class RangeTermForgotten(TriangularSolve):
    def pinv_backward(self, inverse, matrix, cotangent):
        return -inverse.apply_adjoint(inverse.apply(cotangent.mH).mH)


@caught_by("gradient of solve")
class SignWrong(TriangularSolve):
    def solve_backward(self, inverse, solution, cotangent, *, need_matrix=True):
        matrix, rhs = super().solve_backward(inverse, solution, cotangent)
        return -matrix, rhs


@caught_by("gradient of B alone")
class BReadsA(TriangularSolve):
    def solve_backward(self, inverse, solution, cotangent, *, need_matrix=True):
        matrix, rhs = super().solve_backward(inverse, solution, cotangent)
        return (matrix, rhs) if need_matrix else (None, torch.zeros_like(rhs))


@caught_by("gradient of det")
class DeterminantOfTheTranspose(TriangularSolve):
    def det_backward(self, LU, inverse_order, scale):
        return super().det_backward(LU, inverse_order, scale).mT


@caught_by("gradient of slogdet")
class RowsNotPermutedBack(TriangularSolve):
    def det_backward(self, LU, inverse_order, scale):
        order = torch.arange(LU.shape[-1]).expand(inverse_order.shape)
        return super().det_backward(LU, order, scale)


@caught_by("empty matrices and batches")
class NothingIsTooLittle(TriangularSolve):
    def pinv_backward(self, inverse, matrix, cotangent):
        assert cotangent.abs().max() >= 0
        return super().pinv_backward(inverse, matrix, cotangent)


# Conduct.


@caught_by("determinism")
class Dithers(TriangularSolve):
    def inv_backward(self, inverse, cotangent):
        noise = torch.randn(
            cotangent.shape,
            dtype=cotangent.dtype,
            generator=torch.Generator().manual_seed(_entropy()),
        )
        roundoff = 4 * torch.finfo(cotangent.dtype).eps
        return super().inv_backward(inverse, cotangent) * (1 + roundoff * noise)


def _entropy():
    return int(np.random.default_rng().integers(2**62))


@caught_by("no state")
class RemembersByShape(SVDTruncatedPinv):
    def __init__(self):
        self.known = {}

    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        key = (matrix.shape, matrix.dtype, structure)
        if key not in self.known:
            self.known[key] = super().factor(matrix, structure, rtol=rtol, atol=atol)
        return self.known[key]


@caught_by("no state")
class ReusesABuffer(SVDTruncatedPinv):
    buffers: dict = {}  # noqa: RUF012 - shared on purpose

    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        inverse = super().factor(matrix, structure, rtol=rtol, atol=atol)
        key = (inverse.left.shape, inverse.left.dtype)
        buffer = self.buffers.setdefault(key, torch.empty_like(inverse.left))
        return dataclasses.replace(inverse, left=buffer.copy_(inverse.left))


@caught_by("inputs kept")
class OverwritesTheCotangent(TriangularSolve):
    def lu_backward(self, LU, inverse_order, cotangent):
        return super().lu_backward(LU, inverse_order, cotangent.mul_(1.0).tril_())


@caught_by("inputs kept")
class OverwritesTheMatrix(TriangularSolve):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        inverse = super().factor(matrix, structure, rtol=rtol, atol=atol)
        matrix.zero_()
        return inverse


@caught_by("repeated backward")
class OverwritesItsFactors(SVDTruncatedPinv):
    def inv_backward(self, inverse, cotangent):
        gradient = super().inv_backward(inverse, cotangent)
        inverse.left.zero_()
        return gradient


@caught_by("global state kept")
class SeedsTheGenerator(TriangularSolve):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        torch.manual_seed(0)
        return super().factor(matrix, structure, rtol=rtol, atol=atol)


@caught_by("global state kept")
class ChangesTheDefaultDtype(TriangularSolve):
    def inv_backward(self, inverse, cotangent):
        torch.set_default_dtype(torch.float64)
        return super().inv_backward(inverse, cotangent)


@caught_by("global state kept")
class AllowsLowPrecision(TriangularSolve):
    def det_backward(self, LU, inverse_order, scale):
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        return super().det_backward(LU, inverse_order, scale)


@caught_by("result dtype")
class WidensTheResult(TriangularSolve):
    def lu_backward(self, LU, inverse_order, cotangent):
        wide = torch.complex128 if LU.is_complex() else torch.float64
        return super().lu_backward(LU.to(wide), inverse_order, cotangent.to(wide))


@caught_by("working precision")
class SilentlyDouble(TriangularSolve):
    def inv_backward(self, inverse, cotangent):
        wide = torch.complex128 if cotangent.is_complex() else torch.float64
        dense = inverse.dense().to(wide).mH
        return (-dense @ cotangent.to(wide) @ dense).to(cotangent.dtype)


@caught_by("working precision")
class DoubleThroughNumPy(Strategy):
    """The inverse, and every gradient's share of it, from NumPy, which computes in double."""

    summary = "the pseudo-inverse of NumPy in double precision"
    requires_full_rank = False

    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        F = structure.dense(matrix)
        rank = torch.linalg.matrix_rank(F, rtol=rtol, atol=atol)
        wide = F.resolve_conj().numpy().astype(np.result_type(F.numpy().dtype, np.float64))
        dense = torch.from_numpy(np.linalg.pinv(wide).astype(F.numpy().dtype))
        m, n = F.shape[-2:]
        least = int(rank.min()) if rank.numel() else min(m, n)
        return Dense(F, dense, rank, least == n, least == m)

    def inv_backward(self, inverse, cotangent):
        wide = np.result_type(cotangent.numpy().dtype, np.float64)
        A = inverse.matrix.resolve_conj().numpy().astype(wide)
        inverse_adjoint = np.linalg.inv(A).conj().swapaxes(-1, -2)
        gradient = -inverse_adjoint @ cotangent.numpy() @ inverse_adjoint
        return torch.from_numpy(gradient.astype(cotangent.numpy().dtype))


@caught_by("memory layouts")
class WantsContiguousFactors(TriangularSolve):
    def lu_backward(self, LU, inverse_order, cotangent):
        flat = cotangent.view(-1)
        return super().lu_backward(LU, inverse_order, flat.view(cotangent.shape))


@caught_by("not a number")
class HidesNaN(TriangularSolve):
    def factor(self, matrix, structure=Structure.GENERAL, *, rtol=None, atol=None):
        return super().factor(matrix.nan_to_num(), structure, rtol=rtol, atol=atol)
