"""Wrong in what `factor` reads, cuts, refuses and returns."""

import dataclasses

import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import LUFactors, Orthogonal
from zoo.register import caught_by


class Spoiled(SVDTruncatedPinv):
    """A truncated SVD whose inverse is of the kind that a subclass names."""

    kind: type[Orthogonal] = Orthogonal

    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
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


@spoiled("range_complement", range_complement=lambda _, b: torch.zeros_like(b))
class NothingOutsideTheRange(Spoiled): ...


@spoiled("null_complement", null_complement=lambda _, x: torch.zeros_like(x))
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
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, full_column_rank=True)


@spoiled(
    "tensors and rebuilt",
    tensors=lambda _: iter(()),
    rebuilt=lambda self, *_: self,
)
class HidesItsTensors(Spoiled): ...


@spoiled(
    "stable gram",
    has_stable_gram=True,
    apply_gram=lambda self, x: Orthogonal.apply_gram(self, x) * (1 + 1e-6),
)
class ClaimsAStableGram(Spoiled): ...


# What factor reads, cuts and refuses.


@caught_by("triangular structures")
class ReadsTheOtherTriangle(SVDTruncatedPinv):
    def factor_triangular(self, matrix, structure):
        return self.factor_tall(matrix, rtol=0.0, atol=0.0)


@caught_by("rank-deficient pinv")
class NeverCuts(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix, rtol=0.0, atol=0.0)


@caught_by("tolerances")
class IgnoresTolerances(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix, rtol=None, atol=None)


@caught_by("accuracy class of pinv")
class CutsTooEarly(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix, rtol=1e-3 if rtol is None else rtol, atol=atol)


@caught_by("mixed ranks in a batch")
class OneRankForABatch(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, ranks=inverse.rank.max().expand(matrix.shape[:-2]))


@caught_by("rank-deficient lstsq")
class DoesNotRefuse(SVDTruncatedPinv):
    requires_full_rank = True


@caught_by("rank-deficient pinv")
class RefusesWhatItClaims(TriangularSolve):
    requires_full_rank = False


@caught_by("singular matrices in inv")
class InfiniteInverse(TriangularSolve):
    def factor_square(self, matrix):
        return LUFactors(*torch.linalg.lu_factor_ex(matrix)[:2])


@caught_by("not a number")
class HidesNaN(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix.nan_to_num(), rtol=rtol, atol=atol)
