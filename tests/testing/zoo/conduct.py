"""Wrong in what is declared or overwritten, or in the precision that is used."""

import numpy as np
import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, PackedLU
from strategies.strategy import Strategy
from strategies.testing.problems import doubled
from zoo.register import Sound, caught_by, spoils


@caught_by("declaration")
class MustBeKnownByName(TriangularSolve):
    summary = "two\nlines"


@caught_by("declaration")
class MisspellsAnOperation(TriangularSolve):
    def lstq_backward(self, saved, cotangent, *, need_matrix=True):
        return NotImplemented


@caught_by("declaration")
class ExcusesAnUnknownOperation(TriangularSolve):
    accuracy = {"lstq": TriangularSolve.accuracy["inv"]}  # noqa: RUF012 - never written to


@caught_by("inputs kept")
class OverwritesTheCotangent(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(factors, cotangent.mul_(1.0).tril_())


@spoils("factor_tall", "inputs kept", of=TriangularSolve)
def overwrites_the_matrix(inverse, matrix, **_):
    matrix.zero_()
    return inverse


@spoils("solve_forward", "inputs kept")
def overwrites_the_right_hand_side(found, _, rhs):
    X, inverse = found
    return rhs.detach().copy_(X), inverse


@caught_by("repeated backward")
class OverwritesItsFactors(SVDTruncatedPinv):
    def inv_backward(self, saved, cotangent):
        gradient = Sound.inv_backward(self, saved, cotangent)
        saved.inverse.left.zero_()
        return gradient


@caught_by("result dtype")
class WidensTheResult(Sound):
    def lu_backward(self, factors, cotangent):
        packed = PackedLU(doubled(factors.LU), factors.inverse_order)
        return super().lu_backward(packed, doubled(cotangent))


@spoils("inv_backward", "working precision")
def silentlydoubled(_, saved, cotangent):
    dense = doubled(saved.inverse.dense()).mH
    return (-dense @ doubled(cotangent) @ dense).to(cotangent.dtype)


@caught_by("working precision")
class DoubleThroughNumPy(Strategy):
    """The inverse, and every gradient's share of it, from NumPy, which computes in double."""

    summary = "the pseudo-inverse of NumPy in double precision"
    requires_full_rank = False

    def factor_tall(self, matrix, *, rtol, atol):
        rank = torch.linalg.matrix_rank(matrix, rtol=rtol, atol=atol)
        dense = torch.from_numpy(np.linalg.pinv(_wide(matrix))).to(matrix.dtype)
        m, n = matrix.shape[-2:]
        least = int(rank.min()) if rank.numel() else n
        return Dense(matrix, dense, rank, least == n, least == m)

    def inv_backward(self, saved, cotangent):
        inverse_adjoint = np.linalg.inv(_wide(saved.matrix)).conj().swapaxes(-1, -2)
        gradient = -inverse_adjoint @ _wide(cotangent) @ inverse_adjoint
        return torch.from_numpy(gradient).to(cotangent.dtype)


def _wide(tensor):
    array = tensor.resolve_conj().numpy()
    return array.astype(np.result_type(array.dtype, np.float64))
