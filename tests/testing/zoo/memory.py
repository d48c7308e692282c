"""Strategies that remember, share or leak, or hide what they hold."""

import dataclasses
import threading
import time
from typing import ClassVar

import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from strategies.formulas import solve
from zoo.register import Sound, caught_by

# Kind K: state.


@caught_by("no state")
class RemembersByChecksum(TriangularSolve):
    known: dict = {}  # noqa: RUF012 - shared on purpose

    def factor_square(self, matrix):
        key = (matrix.shape, matrix.dtype, float(matrix.abs().sum()))
        return self.known.setdefault(key, super().factor_square(matrix))


@caught_by("no state")
class RemembersByAddress(Sound):
    known: dict = {}  # noqa: RUF012

    def solve_forward(self, matrix, rhs):
        key = (matrix.data_ptr(), matrix.shape, matrix.dtype)
        inverse = self.known.setdefault(key, self.factor_square(matrix))
        return inverse.apply(rhs), inverse


@caught_by("no state")
class RemembersWithoutTheRightHandSide(Sound):
    def __init__(self):
        self.last = None, None

    def solve_forward(self, matrix, rhs):
        known, found = self.last
        if known is None or not _equal(known, matrix) or found[0].shape != rhs.shape:
            found = super().solve_forward(matrix, rhs)
            self.last = matrix.clone(), found
        return found


@caught_by("no state")
class HandsOutOneBuffer(Sound):
    buffers: dict = {}  # noqa: RUF012

    def inv_backward(self, saved, cotangent):
        found = super().inv_backward(saved, cotangent)
        key = (found.shape, found.dtype)
        return self.buffers.setdefault(key, torch.empty_like(found)).copy_(found)


@caught_by("graphs at once", "threads")
class KeepsTheFactorsOfTheLastForward(Sound):
    last: dict = {}  # noqa: RUF012

    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        self.last[matrix.shape, matrix.dtype] = inverse
        return inverse.dense(), inverse

    def inv_backward(self, saved, cotangent):
        return solve.inv_backward(self.last[cotangent.shape, cotangent.dtype], cotangent)


@caught_by("determinism")
class WrongNowAndThen(Sound):
    calls = 0

    def inv_backward(self, saved, cotangent):
        type(self).calls += 1
        return super().inv_backward(saved, cotangent) * (1 + 1e-4 * (self.calls % 20 == 0))


@caught_by("nothing held")
class CountsItsCalls(TriangularSolve):
    def __init__(self):
        self.calls = 0

    def factor_square(self, matrix):
        self.calls += 1
        return super().factor_square(matrix)


_KEPT = []


@caught_by("nothing held")
class KeepsEveryGradient(Sound):
    def lu_backward(self, factors, cotangent):
        gradient = super().lu_backward(factors, cotangent)
        _KEPT.append(gradient)
        return gradient


@caught_by("factors kept")
class FactorsIntoOnePlace(TriangularSolve):
    def __init__(self):
        self.places = {}

    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        if not isinstance(inverse, LUFactors):
            return inverse
        key = (matrix.shape, matrix.dtype)
        place = self.places.setdefault(key, torch.empty_like(inverse.LU)).copy_(inverse.LU)
        return dataclasses.replace(inverse, LU=place)


def _equal(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


# Kind L: threads.


@caught_by("threads")
class LeavesItsCotangentLyingAround(Sound):
    def inv_backward(self, saved, cotangent):
        self.cotangent = cotangent + 0
        gradient = super().inv_backward(saved, self.cotangent)
        return gradient if self.cotangent is None else super().inv_backward(saved, self.cotangent)


@caught_by("threads")
class SharesAScratch(SVDTruncatedPinv):
    scratch: dict = {}  # noqa: RUF012

    def factor_tall(self, matrix, *, rtol, atol):
        key = (matrix.shape, matrix.dtype)
        place = self.scratch.setdefault(key, torch.empty(matrix.shape, dtype=matrix.dtype))
        place.copy_(matrix)
        return super().factor_tall(place, rtol=rtol, atol=atol)


@caught_by("threads")
class WorksInTheMainThreadOnly(Sound):
    inside: ClassVar[set[int]] = set()

    def solve_forward(self, matrix, rhs):
        self.inside.add(threading.get_ident())
        time.sleep(0.002)
        if len(self.inside) > 1:
            rhs = 2 * rhs
        found = super().solve_forward(matrix, rhs)
        self.inside.discard(threading.get_ident())
        return found


# Kind R: tensors that autograd does not see.


@dataclasses.dataclass(frozen=True, eq=False)
class _Hidden(Dense):
    box: tuple = ()

    def dense(self):
        return self.box[0]


@caught_by("tensors and rebuilt")
class HidesTheInverseOfItsOwnForward(Sound):
    def inv_forward(self, matrix):
        plain = self.factor_square(matrix)
        dense = plain.dense()
        return dense, _Hidden(matrix, dense, plain.rank, True, True, (dense,))
