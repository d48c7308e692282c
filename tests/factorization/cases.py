"""Factors and what they are compared with: the same functions of the matrix by torch.linalg."""

import torch
from comparison import drawn

import strategies
from strategies.formulas.domains import hermitian_part

DTYPES = [torch.float64, torch.complex128]
SQUARE = ["lu", "spd", "qr"]
SHAPES = {"lu": (4, 4), "spd": (4, 4), "qr": (5, 3), "svd": (3, 5)}


def matrix(kind, dtype=torch.float64, batch=(), shape=None, seed=0):
    """One that has a factor of the kind."""
    m, n = shape or SHAPES[kind]
    A = drawn(*batch, m, n, dtype=dtype, seed=seed)
    if kind == "spd":
        return A @ A.mH + torch.eye(n, dtype=dtype)
    if kind == "svd":
        return A[..., :2] @ drawn(*batch, 2, n, dtype=dtype, seed=seed + 3)
    return A


def columns(A, k=2, adjoint=False, seed=1):
    rows = A.shape[-1 if adjoint else -2]
    return drawn(*A.shape[:-2], rows, k, dtype=A.dtype, seed=seed)


def uses(kind):
    """By name, a function of a factor and right-hand sides, and the same of the matrix by torch."""
    found = {
        "lstsq": (lambda f, B, _: f.lstsq(B), lambda A, B, _: torch.linalg.pinv(A) @ B),
        "adjoint": (
            lambda f, _, C: f.lstsq(C, adjoint=True),
            lambda A, _, C: torch.linalg.pinv(A).mH @ C,
        ),
        "inverse": (lambda f, *_: f.inverse(), lambda A, *_: torch.linalg.pinv(A)),
    }
    if kind in ("lu", "spd"):
        found |= {
            "solve": (lambda f, B, _: f.solve(B), lambda A, B, _: torch.linalg.solve(A, B)),
            "logabsdet": (
                lambda f, *_: f.slogdet().logabsdet,
                lambda A, *_: torch.linalg.slogdet(A).logabsdet,
            ),
            "sign": (lambda f, *_: f.slogdet().sign, lambda A, *_: torch.linalg.slogdet(A).sign),
            "det": (lambda f, *_: f.det(), lambda A, *_: torch.linalg.det(A)),
            "inv_quad_logdet": (
                lambda f, B, _: sum(f.inv_quad_logdet(B)),
                lambda A, B, _: (
                    (B.conj() * torch.linalg.solve(A, B)).sum((-2, -1)).real
                    + torch.linalg.slogdet(A).logabsdet
                ),
            ),
        }
    return found


CASES = [(kind, use) for kind in SHAPES for use in uses(kind)]


def loss(outputs):
    """A nonlinear one, whose second derivatives in the outputs are not constant."""
    angles = outputs.real + 2 * outputs.imag if outputs.is_complex() else outputs
    return (angles.sin() + angles.square() / 3).sum()


def of_factor(kind, use):
    """Loss as a function of the matrix and right-hand sides for both systems, by one factor.

    Of positive definite matrices, whose perturbations are Hermitian, the Hermitian part is factored.
    """
    by_factor, _ = uses(kind)[use]
    part = hermitian_part if kind == "spd" else lambda A: A
    return lambda A, B, C: loss(by_factor(strategies.factor(part(A), kind), B, C))


def operands(kind, dtype=torch.float64, batch=()):
    A = matrix(kind, dtype, batch)
    return A, columns(A), columns(A, adjoint=True, seed=2)
