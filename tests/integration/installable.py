"""What the operators that can be installed are called with, and what they return."""

import functools

import torch

from strategies import operations
from strategies.formulas.domains import GENERAL, LOWER_TRIANGULAR, POSITIVE_DEFINITE

OVERLOADS = sorted({calls.operator for calls in operations.aten_calls()})


def called(overload):
    """The operator as PyTorch has it."""
    name, _, of = overload.partition(".")
    return getattr(getattr(torch.ops.aten, name), of or "default")


def matrices(dtype, *batch):
    """Hermitian positive definite ones."""
    A = torch.randn(*batch, 5, 5, dtype=dtype)
    return A @ A.mH + 5 * torch.eye(5, dtype=dtype)


def general(dtype=torch.float64, *batch):
    return matrices(dtype, *batch) + 0.5 * torch.randn(*batch, 5, 5, dtype=dtype)


def rhs(dtype, *batch, columns=2):
    return torch.randn(*batch, 5, columns, dtype=dtype)


def triangle(dtype, *batch):
    return torch.linalg.cholesky(matrices(dtype, *batch))


tall = functools.partial(rhs, columns=3)

DOMAINS = {matrices: POSITIVE_DEFINITE, triangle: LOWER_TRIANGULAR}
INPUTS = {
    "cholesky_inverse": (triangle,),
    "cholesky_solve": (rhs, triangle),
    **dict.fromkeys(("linalg_cholesky", "linalg_cholesky_ex"), (matrices,)),
    "linalg_lstsq": (tall, rhs),
    **dict.fromkeys(("linalg_pinv.atol_rtol_tensor", "linalg_qr"), (tall,)),
    **dict.fromkeys(("linalg_lu_solve", "linalg_solve", "linalg_solve_ex"), (general, rhs)),
    "linalg_solve_triangular": (triangle, rhs),
}
"""What operators take that do not take a general square matrix alone."""
SWAPS = torch.tensor([3, 2, 5, 4, 5], dtype=torch.int32)
OPTIONS = {"linalg_solve_triangular": {"upper": False}}


def inputs(overload, dtype, *batch):
    return [each(dtype, *batch) for each in INPUTS.get(overload, (general,))]


def outputs(overload, *given):
    """Of functions that read a triangle, of Hermitian and of triangular matrices alone."""
    pairs = zip(given, INPUTS.get(overload, (general,)), strict=True)
    given = [DOMAINS.get(kind, GENERAL).part(each) for each, kind in pairs]
    if overload == "linalg_lu_solve":  # any square matrix is one of packed factors
        given.insert(1, SWAPS.expand(given[0].shape[:-1]).contiguous())
    found = called(overload)(*given, **OPTIONS.get(overload, {}))
    return list(found) if isinstance(found, tuple | list) else [found]


def smooth(overload, *given):
    """The differentiable outputs, without the imaginary part of what is real."""
    found = [each for each in outputs(overload, *given) if each.requires_grad]
    if overload.startswith("linalg_cholesky"):
        found[0] = LOWER_TRIANGULAR.part(found[0])
    return found
