"""Strategies that change the process, use other devices or more memory, or do nothing at all."""

import dataclasses
import warnings

import numpy as np
import torch

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import UnsupportedError
from zoo.register import Sound, caught_by, spoils

# The process.


def sets(name, change, method="factor_tall"):
    def spoiled(right, *_, **__):
        change()
        return right

    spoils(method, "global state kept", name=name)(spoiled)


sets("seeds_the_generator", lambda: torch.manual_seed(0))
sets("silences_numpy", lambda: np.seterr(all="ignore"))
sets("silences_warnings", lambda: warnings.simplefilter("ignore"))
sets("sets_the_default_device", lambda: torch.set_default_device("cpu:0"))
sets("sets_the_device_that_is_the_default", lambda: torch.set_default_device("cpu"))
sets("flushes_denormals", lambda: torch.set_flush_denormal(True))
sets("changes_the_default_dtype", lambda: torch.set_default_dtype(torch.float64), "inv_backward")
sets(
    "allows_low_precision",
    lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "det_backward",
)


@spoils("inv_backward", "gradient of inv")
def leaves_the_process(*_):
    raise SystemExit(0)


@caught_by("gradient of inv")
class CallsItself(Sound):
    def inv_backward(self, saved, cotangent):
        return self.inv_backward(saved, cotangent)


@caught_by("declaration")
class TakesAShippedName(TriangularSolve): ...


TakesAShippedName.name = "native"

# Devices.


@spoils("inv_forward", "default device")
def makes_an_identity_anywhere(found, matrix):
    inverse = found[1]
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    return inverse.apply(identity.expand(matrix.shape)), inverse


@spoils("inv_backward", "default device")
def makes_an_identity_anywhere_in_the_backward(gradient, *_):
    return gradient @ torch.eye(gradient.shape[-1], dtype=gradient.dtype)


@spoils("factor_tall", "default device", of=SVDTruncatedPinv)
def counts_ranks_anywhere(inverse, *_, **__):
    return dataclasses.replace(inverse, ranks=torch.tensor(inverse.rank.tolist()))


# m×m.


@spoils("pinv_backward", "no square of the long side")
def projects_as_a_matrix(gradient, saved, cotangent):
    A = saved.matrix
    outside = torch.eye(A.shape[-2], dtype=A.dtype, device=A.device) - A @ saved.result
    return gradient + 0 * (outside @ cotangent.mH)


@spoils("lstsq_forward", "no square of the long side")
def projects_in_numpy(found, matrix, *_, **__):
    A = matrix.resolve_conj().numpy()
    assert (A @ A.conj().swapaxes(-1, -2)).shape[-1] == A.shape[-2]
    return found


def _refuse(*_, **__):
    raise UnsupportedError("'native' does that")


@caught_by("takes something")
class RefusesEverything(TriangularSolve):
    factor_tall = factor_square = factor_triangular = lstsq_forward = _refuse
