"""Strategies that change the process, use other devices or more memory, or do nothing at all."""

import dataclasses
import warnings

import numpy as np
import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import UnsupportedError
from zoo.register import Sound, caught_by

# Kind M: settings of the process.


class _Sets(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        self.set()
        return super().factor_tall(matrix, rtol=rtol, atol=atol)

    def factor_square(self, matrix):
        self.set()
        return super().factor_square(matrix)


@caught_by("global state kept")
class SilencesNumPy(_Sets):
    def set(self):
        np.seterr(all="ignore")


@caught_by("global state kept")
class SilencesWarnings(_Sets):
    def set(self):
        warnings.simplefilter("ignore")


@caught_by("global state kept")
class SetsTheDefaultDevice(_Sets):
    def set(self):
        torch.set_default_device("cpu:0")


@caught_by("global state kept")
class SetsTheDeviceThatIsTheDefault(_Sets):
    def set(self):
        torch.set_default_device("cpu")


@caught_by("global state kept")
class FlushesDenormals(_Sets):
    def set(self):
        torch.set_flush_denormal(True)


# Kind S: devices.


@caught_by("default device")
class MakesAnIdentityAnywhere(Sound):
    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        return inverse.apply(identity.expand(matrix.shape)), inverse


@caught_by("default device")
class MakesAnIdentityAnywhereInTheBackward(Sound):
    def inv_backward(self, saved, cotangent):
        identity = torch.eye(cotangent.shape[-1], dtype=cotangent.dtype)
        return super().inv_backward(saved, cotangent @ identity)


@caught_by("default device")
class CountsRanksAnywhere(SVDTruncatedPinv):
    def factor_tall(self, matrix, *, rtol, atol):
        inverse = super().factor_tall(matrix, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, ranks=torch.tensor(inverse.rank.tolist()))


# Kind T: m×m.


@caught_by("no square of the long side")
class ProjectsAsAMatrix(Sound):
    def pinv_backward(self, saved, cotangent):
        A = saved.matrix
        m = A.shape[-2]
        outside = torch.eye(m, dtype=A.dtype, device=A.device) - A @ saved.result
        W = cotangent.mH
        inner = super().pinv_backward(saved, cotangent)
        return inner + 0 * (outside @ W)


@caught_by("no square of the long side")
class ProjectsInNumPy(Sound):
    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix, rtol=rtol)
        A = matrix.resolve_conj().numpy()
        assert (A @ A.conj().swapaxes(-1, -2)).shape[-1] == A.shape[-2]
        return inverse.apply(rhs), inverse


# Kind V: nothing at all.


@caught_by("takes something")
class RefusesEverything(TriangularSolve):
    def factor_tall(self, matrix, *, rtol, atol):
        raise UnsupportedError("'native' does that")

    def factor_square(self, matrix):
        raise UnsupportedError("'native' does that")

    def factor_triangular(self, matrix, structure):
        raise UnsupportedError("'native' does that")

    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        raise UnsupportedError("'native' does that")


# The command.


@caught_by("gradient of inv")
class LeavesTheProcess(Sound):
    def inv_backward(self, saved, cotangent):
        raise SystemExit(0)


@caught_by("gradient of inv")
class CallsItself(Sound):
    def inv_backward(self, saved, cotangent):
        return self.inv_backward(saved, cotangent)


@caught_by("declaration")
class TakesAShippedName(TriangularSolve): ...


TakesAShippedName.name = "native"
