"""Wrong in what `factor` reads, refuses and returns."""

import dataclasses

import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Orthogonal
from zoo.register import caught_by, spoils


def inverse_with(name, check, **methods):
    """A truncated SVD whose inverse has these methods in place of its own."""
    kind = type("SpoiledInverse", (Orthogonal,), methods)

    def spoiled(inverse, *_, **__):
        return kind(*(getattr(inverse, f.name) for f in dataclasses.fields(Orthogonal)))

    spoils("factor_tall", check, of=SVDTruncatedPinv, name=name)(spoiled)


_of = Orthogonal
inverse_with("applies_twice", "apply", apply=lambda F, b: 2 * _of.apply(F, b))
inverse_with("conjugation_forgotten", "apply_adjoint", apply_adjoint=lambda F, x: F.dense().mT @ x)
inverse_with(
    "adjoint_of_the_wrong_inverse",
    "adjoint identity",
    apply_adjoint=lambda F, x: _of.apply_adjoint(F, x).conj(),
)
inverse_with("rows_in_the_wrong_order", "dense", dense=lambda F: _of.dense(F).flip(-2))
inverse_with(
    "gram_without_conjugation", "apply_gram", apply_gram=lambda F, x: F.dense() @ (F.dense().mT @ x)
)
inverse_with(
    "nothing_outside_the_range",
    "range_complement",
    range_complement=lambda _, b: torch.zeros_like(b),
)
inverse_with(
    "null_space_forgotten", "null_complement", null_complement=lambda _, x: torch.zeros_like(x)
)
inverse_with("range_coordinates_scaled", "to_range", to_range=lambda F, b: 2 * _of.to_range(F, b))
inverse_with("range_basis_turned", "from_range", from_range=lambda F, c: -_of.from_range(F, c))
inverse_with("columns_reversed", "solve", solve=lambda F, c: _of.solve(F, c.flip(-1)))
inverse_with(
    "coordinates_conjugated",
    "solve_adjoint",
    solve_adjoint=lambda F, x: _of.solve_adjoint(F, x).conj(),
)
inverse_with("rank_off_by_one", "rank and flags", rank=property(lambda F: F.ranks + 1))
inverse_with(
    "hides_its_tensors", "tensors and rebuilt", tensors=lambda _: iter(()), rebuilt=lambda F, *_: F
)
inverse_with(
    "claims_a_stable_gram",
    "stable gram",
    has_stable_gram=True,
    apply_gram=lambda F, x: _of.apply_gram(F, x) * (1 + 1e-6),
)


@spoils("factor_tall", "rank and flags", of=SVDTruncatedPinv)
def claims_full_rank(inverse, *_, **__):
    return dataclasses.replace(inverse, full_column_rank=True)


@caught_by("triangular structures")
class ReadsTheOtherTriangle(SVDTruncatedPinv):
    def factor_triangular(self, matrix, structure):
        return self.factor_tall(matrix, rtol=0.0, atol=0.0)


@spoils("factor_tall", "mixed ranks in a batch", of=SVDTruncatedPinv)
def one_rank_for_a_batch(inverse, *_, **__):
    return dataclasses.replace(inverse, ranks=inverse.rank.max().expand(inverse.rank.shape))


@caught_by("rank-deficient lstsq")
class DoesNotRefuse(SVDTruncatedPinv):
    requires_full_rank = True


@caught_by("rank-deficient pinv")
class RefusesWhatItClaims(TriangularSolve):
    requires_full_rank = False


@caught_by("not a number")
class HidesNaN(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        return super().factor_tall(matrix.nan_to_num(), rtol=rtol, atol=atol)
