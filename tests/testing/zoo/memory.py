"""Strategies that remember, share or leak, or hide what they hold."""

import dataclasses
import threading
import time

import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, LUFactors
from strategies.formulas import solve
from zoo.register import Sound, caught_by, spoils

_known = {}
"""What the strategies remember, each by keys of its own."""

_inside = set()


def _equal(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


@spoils("factor_tall", "no state", of=SVDTruncatedPinv)
def remembers_by_shape(inverse, matrix, **_):
    return _known.setdefault(("shape", matrix.shape, matrix.dtype), inverse)


@spoils("factor_square", "no state", of=TriangularSolve)
def remembers_by_checksum(inverse, matrix):
    return _known.setdefault((matrix.shape, matrix.dtype, float(matrix.abs().sum())), inverse)


@spoils("solve_forward", "no state")
def remembers_by_address(found, matrix, rhs):
    inverse = _known.setdefault((matrix.data_ptr(), matrix.shape, matrix.dtype), found[1])
    return inverse.apply(rhs), inverse


@spoils("solve_forward", "no state")
def remembers_without_the_right_hand_side(found, matrix, rhs):
    last, kept = _known.get("solution", (None, None))
    if last is None or not _equal(last, matrix) or kept[0].shape != rhs.shape:
        _known["solution"] = matrix.clone(), found
        return found
    return kept


@spoils("factor_tall", "no state", of=SVDTruncatedPinv)
def reuses_a_buffer(inverse, *_, **__):
    key = "left", inverse.left.shape, inverse.left.dtype
    buffer = _known.setdefault(key, torch.empty_like(inverse.left))
    return dataclasses.replace(inverse, left=buffer.copy_(inverse.left))


@spoils("inv_backward", "no state")
def hands_out_one_buffer(gradient, *_):
    key = "gradient", gradient.shape, gradient.dtype
    return _known.setdefault(key, torch.empty_like(gradient)).copy_(gradient)


@caught_by("graphs at once", "threads")
class KeepsTheFactorsOfTheLastForward(Sound):
    def inv_forward(self, matrix):
        found = super().inv_forward(matrix)
        _known["last", matrix.shape, matrix.dtype] = found[1]
        return found

    def inv_backward(self, saved, cotangent):
        return solve.inv_backward(_known["last", cotangent.shape, cotangent.dtype], cotangent)


@spoils("inv_backward", "determinism")
def wrong_now_and_then(gradient, *_):
    _known["calls"] = _known.get("calls", 0) + 1
    return gradient * (1 + 1e-4 * (_known["calls"] % 20 == 0))


@caught_by("nothing held")
class CountsItsCalls(TriangularSolve):
    def __init__(self):
        self.calls = 0

    def factor_square(self, matrix):
        self.calls += 1
        return super().factor_square(matrix)


@spoils("lu_backward", "nothing held")
def keeps_every_gradient(gradient, *_):
    _known.setdefault("gradients", []).append(gradient)
    return gradient


@spoils("factor_tall", "factors kept", of=TriangularSolve)
def factors_into_one_place(inverse, *_, **__):
    if not isinstance(inverse, LUFactors):
        return inverse
    key = "LU", inverse.LU.shape, inverse.LU.dtype
    place = _known.setdefault(key, torch.empty_like(inverse.LU)).copy_(inverse.LU)
    return dataclasses.replace(inverse, LU=place)


@caught_by("threads")
class LeavesItsCotangentLyingAround(Sound):
    def inv_backward(self, saved, cotangent):
        self.cotangent = cotangent + 0
        gradient = super().inv_backward(saved, self.cotangent)
        return gradient if self.cotangent is None else super().inv_backward(saved, self.cotangent)


@caught_by("threads")
class SharesAScratch(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        key = "scratch", matrix.shape, matrix.dtype
        place = _known.setdefault(key, torch.empty(matrix.shape, dtype=matrix.dtype))
        return super().factor_tall(place.copy_(matrix), rtol=rtol, atol=atol)


@caught_by("threads")
class WorksInTheMainThreadOnly(Sound):
    def solve_forward(self, matrix, rhs):
        _inside.add(threading.get_ident())
        time.sleep(0.002)
        if len(_inside) > 1:
            rhs = 2 * rhs
        found = super().solve_forward(matrix, rhs)
        _inside.discard(threading.get_ident())
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class _Hidden(Dense):
    """A tensor that autograd does not see."""

    box: tuple = ()

    def dense(self):
        return self.box[0]


@spoils("inv_forward", "tensors and rebuilt")
def hides_the_inverse_of_its_own_forward(found, matrix):
    dense, plain = found
    return dense, _Hidden(matrix, dense, plain.rank, True, True, (dense,))
