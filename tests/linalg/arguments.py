"""Arguments of every function: well-conditioned matrices, and what goes with them."""

import functools

import torch
from comparison import drawn, of_torch

from strategies import linalg

A, B = drawn(2, 3, 3) + 3 * torch.eye(3), drawn(2, 3, 2, seed=1)
DEFINITE = A @ A.mT
FACTOR = torch.linalg.cholesky(DEFINITE)
LU, PIVOTS = torch.linalg.lu_factor(A)

OF_A = "det", "eig", "inv", "inv_ex", "inverse", "lu", "lu_factor", "lu_factor_ex", "qr", "slogdet"
ARGUMENTS = {
    **dict.fromkeys(OF_A, (A,)),
    **dict.fromkeys(("cholesky", "cholesky_ex", "logdet"), (DEFINITE,)),
    **dict.fromkeys(("solve", "solve_ex", "solve_triangular"), (A, B)),
    "cholesky_inverse": (FACTOR,),
    "cholesky_solve": (B, FACTOR),
    "lstsq": (A[:, :, :2], B),
    "lu_solve": (LU, PIVOTS, B),
    "matrix_power": (A, -2),
    "pinv": (A[:, :, :2],),
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
