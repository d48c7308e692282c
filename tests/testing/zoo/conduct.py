"""Wrong in what is declared, remembered, overwritten, or in the precision that is used."""

import dataclasses

import numpy as np
import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, PackedLU
from strategies.strategy import Strategy
from zoo.register import Sound, caught_by


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


@caught_by("determinism")
class Dithers(Sound):
    def inv_backward(self, saved, cotangent):
        entropy = int(np.random.default_rng().integers(2**62))
        noise = torch.randn(
            cotangent.shape,
            dtype=cotangent.dtype,
            generator=torch.Generator().manual_seed(entropy),
        )
        roundoff = 4 * torch.finfo(cotangent.dtype).eps
        return super().inv_backward(saved, cotangent) * (1 + roundoff * noise)


@caught_by("no state")
class RemembersByShape(SVDTruncatedPinv):
    def __init__(self):
        self.known = {}

    def factor_tall(self, matrix, *, rtol, atol):
        key = (matrix.shape, matrix.dtype)
        if key not in self.known:
            self.known[key] = super().factor_tall(matrix, rtol=rtol, atol=atol)
        return self.known[key]


@caught_by("no state")
class ReusesABuffer(SVDTruncatedPinv):
    buffers: dict = {}  # noqa: RUF012 - shared on purpose

    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        key = (inverse.left.shape, inverse.left.dtype)
        buffer = self.buffers.setdefault(key, torch.empty_like(inverse.left))
        return dataclasses.replace(inverse, left=buffer.copy_(inverse.left))


@caught_by("inputs kept")
class OverwritesTheCotangent(Sound):
    def lu_backward(self, factors, cotangent):
        return super().lu_backward(factors, cotangent.mul_(1.0).tril_())


@caught_by("inputs kept")
class OverwritesTheMatrix(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        matrix.zero_()
        return inverse


@caught_by("inputs kept")
class OverwritesTheRightHandSide(Sound):
    def solve_forward(self, matrix, rhs):
        X, inverse = super().solve_forward(matrix, rhs)
        return rhs.detach().copy_(X), inverse


@caught_by("repeated backward")
class OverwritesItsFactors(SVDTruncatedPinv):
    def inv_backward(self, saved, cotangent):
        gradient = Sound.inv_backward(self, saved, cotangent)
        saved.inverse.left.zero_()
        return gradient


@caught_by("global state kept")
class SeedsTheGenerator(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        torch.manual_seed(0)
        return super().factor_tall(matrix, rtol=rtol, atol=atol)


@caught_by("global state kept")
class ChangesTheDefaultDtype(Sound):
    def inv_backward(self, saved, cotangent):
        torch.set_default_dtype(torch.float64)
        return super().inv_backward(saved, cotangent)


@caught_by("global state kept")
class AllowsLowPrecision(Sound):
    def det_backward(self, factors, scale):
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        return super().det_backward(factors, scale)


@caught_by("result dtype")
class WidensTheResult(Sound):
    def lu_backward(self, factors, cotangent):
        wide = torch.complex128 if cotangent.is_complex() else torch.float64
        packed = PackedLU(factors.LU.to(wide), factors.inverse_order)
        return super().lu_backward(packed, cotangent.to(wide))


@caught_by("working precision")
class SilentlyDouble(Sound):
    def inv_backward(self, saved, cotangent):
        wide = torch.complex128 if cotangent.is_complex() else torch.float64
        dense = saved.inverse.dense().to(wide).mH
        return (-dense @ cotangent.to(wide) @ dense).to(cotangent.dtype)


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


@caught_by("layouts in lu_factor")
class WantsContiguousFactors(Sound):
    def lu_backward(self, factors, cotangent):
        flat = cotangent.view(-1)
        return super().lu_backward(factors, flat.view(cotangent.shape))
