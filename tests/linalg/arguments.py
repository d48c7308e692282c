"""Arguments of every function: well-conditioned matrices, and what goes with them."""

import functools

import torch
from comparison import drawn, of_torch

from strategies import linalg

A, B = drawn(2, 3, 3) + 3 * torch.eye(3), drawn(2, 3, 2, seed=1)
DEFINITE = A @ A.mT
FACTOR = torch.linalg.cholesky(DEFINITE)
LU, PIVOTS = torch.linalg.lu_factor(A)

ARGUMENTS = {
    "cholesky": (DEFINITE,),
    "cholesky_ex": (DEFINITE,),
    "cholesky_inverse": (FACTOR,),
    "cholesky_solve": (B, FACTOR),
    "det": (A,),
    "eig": (A,),
    "inv": (A,),
    "inv_ex": (A,),
    "inverse": (A,),
    "logdet": (DEFINITE,),
    "lstsq": (A[:, :, :2], B),
    "lu": (A,),
    "lu_factor": (A,),
    "lu_factor_ex": (A,),
    "lu_solve": (LU, PIVOTS, B),
    "matrix_power": (A, -2),
    "pinv": (A[:, :, :2],),
    "qr": (A,),
    "slogdet": (A,),
    "solve": (A, B),
    "solve_ex": (A, B),
    "solve_triangular": (A, B),
    "tensorinv": (A[0], 1),
    "tensorsolve": (A[0], B[0, :, 0]),
}
OPTIONS = {"solve_triangular": {"upper": True}}


def ours_and_torchs(name, **options):
    """Both functions of that name, with the options that they need; ours with more."""
    needed = OPTIONS.get(name, {})
    return (
        functools.partial(getattr(linalg, name), **needed, **options),
        functools.partial(of_torch(name), **needed),
    )


def is_float(argument):
    return isinstance(argument, torch.Tensor) and argument.is_floating_point()


def leaves_of(name):
    """The arguments, all that have a gradient as leaves."""
    return [each.clone().requires_grad_() if is_float(each) else each for each in ARGUMENTS[name]]
