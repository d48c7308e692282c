"""Strategies that are right in unusual ways: every check must let them pass."""

import dataclasses
import functools

import numpy as np
import torch
from zoo.register import Sound

from strategies.builtin.native import Native
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import UnsupportedError, raise_if_deficient, raise_if_singular
from strategies.factors import Dense, Orthogonal, Triangular
from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse, Structure, full_rank
from strategies.formulas.accuracy_classes import SOLVES_NORMAL_EQUATIONS, SOLVES_WITH_LU
from strategies.strategy import Strategy
from strategies.testing.problems import doubled


def _identity(like):
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


class Refined(TriangularSolve):
    name = "refined"
    summary = "triangular_solve, its inverses refined by one step of Newton's iteration"

    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        X = inverse.dense()
        return X + inverse.apply(_identity(matrix) - matrix @ X), inverse


class QROfTheAdjoint(Strategy):
    name = "qr_of_the_adjoint"
    summary = "QR of tall matrices, reached through the wide one"
    requires_full_rank = True

    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        Q, R = torch.linalg.qr(matrix)
        rank = torch.linalg.matrix_rank(matrix, rtol=rtol, atol=atol)
        raise_if_deficient(rank < n, self.name)
        L = R.mH
        core = Triangular(L, Structure.LOWER).adjoint
        return Orthogonal(Q, core, None, rank, full_column_rank=True, full_row_rank=m == n)

    def factor_square(self, matrix):
        Q, R = torch.linalg.qr(matrix)
        if matrix.numel():
            smallest = R.diagonal(dim1=-2, dim2=-1).abs().amin(-1)
            is_singular = torch.linalg.matrix_rank(matrix) < matrix.shape[-1]
            raise_if_singular((smallest < 1e-300) | is_singular, self.name, "it has no inverse")
        core = Triangular(R.mH, Structure.LOWER).adjoint
        return Orthogonal(Q, core, None, core.rank, full_column_rank=True, full_row_rank=True)


class NormalEquations(TriangularSolve):
    name = "normal_equations"
    summary = "(AᴴA)⁻¹Aᴴ of tall matrices, by Cholesky"
    accuracy = {**SOLVES_WITH_LU, **SOLVES_NORMAL_EQUATIONS}  # noqa: RUF012 - never written to

    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        if m == n or matrix.numel() == 0:
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        rank = torch.linalg.matrix_rank(matrix, rtol=rtol, atol=atol)
        raise_if_deficient(rank < n, self.name)
        factor, info = torch.linalg.cholesky_ex(matrix.mH @ matrix)
        raise_if_deficient(info != 0, self.name)
        inverse = torch.cholesky_solve(matrix.mH, factor)
        return Dense(matrix, inverse, rank, full_column_rank=True, full_row_rank=False)

    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        return NotImplemented


@dataclasses.dataclass(frozen=True, eq=False)
class _CompletelyPivoted(Nonsingular):
    """P A Q = L U, with L and U in one matrix."""

    matrix: torch.Tensor
    LU: torch.Tensor
    P: torch.Tensor
    Q: torch.Tensor

    @property
    def rank(self):
        return full_rank(self.LU)

    def solve(self, c):
        c = torch.linalg.solve_triangular(self.LU, self.P @ c, upper=False, unitriangular=True)
        return self.Q @ torch.linalg.solve_triangular(self.LU, c, upper=True)

    def solve_adjoint(self, x):
        x = torch.linalg.solve_triangular(self.LU.mH, self.Q.mH @ x, upper=False)
        x = torch.linalg.solve_triangular(self.LU.mH, x, upper=True, unitriangular=True)
        return self.P.mH @ x

    def dense(self):
        return self.solve(_identity(self.LU).expand(self.LU.shape))


class CompletePivoting(QROfTheAdjoint):
    name = "complete_pivoting"
    summary = "LU with complete pivoting of square matrices; else QR"
    accuracy = SOLVES_WITH_LU

    def inv_forward(self, matrix):
        inverse = self._factored(matrix)
        return inverse.dense(), inverse

    def solve_forward(self, matrix, rhs):
        inverse = self._factored(matrix)
        return inverse.apply(rhs), inverse

    def _factored(self, matrix):
        n = matrix.shape[-1]
        P, Q = (_identity(matrix).expand(matrix.shape).clone() for _ in "PQ")
        LU = matrix.clone()
        for index in np.ndindex(matrix.shape[:-2]):
            A, rows, columns = LU[index], P[index], Q[index]
            for j in range(n):
                at = int(A[j:, j:].abs().nan_to_num(nan=torch.inf).argmax())
                r, c = j + at // (n - j), j + at % (n - j)
                for swapped in (A, rows):
                    swapped[[j, r]] = swapped[[r, j]]
                for swapped in (A, columns):
                    swapped[:, [j, c]] = swapped[:, [c, j]]
                raise_if_singular(A[j, j] == 0, self.name, "it has no inverse")
                A[j + 1 :, j] /= A[j, j]
                A[j + 1 :, j + 1 :] -= torch.outer(A[j + 1 :, j], A[j, j + 1 :])
        return _CompletelyPivoted(matrix, LU, P, Q)


class AlwaysNotImplemented(TriangularSolve):
    name = "always_not_implemented"
    summary = "triangular_solve with methods that leave everything to the formulas"


for _stem in ("pinv", "lstsq", "solve", "inv", "lu", "det"):
    for _what in ("forward", "backward"):
        if (_stem, _what) not in (("lu", "forward"), ("det", "forward")):
            setattr(AlwaysNotImplemented, f"{_stem}_{_what}", lambda *_, **__: NotImplemented)


class InDouble(QRPinv):
    name = "in_double"
    summary = "qr_pinv with single precision computed in double"
    computes_in_double = True

    def inv_backward(self, saved, cotangent):
        X = doubled(saved.result)
        return -(X.mH @ doubled(cotangent) @ X.mH).to(cotangent.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class _Balanced(Orthogonal):
    """(F D⁻¹ D)⁺ of full column rank: D⁻¹ times the inverse of the balanced matrix."""

    scales: torch.Tensor

    def solve(self, c):
        return super().solve(c) / self.scales.unsqueeze(-1)

    def solve_adjoint(self, x):
        return super().solve_adjoint(x / self.scales.unsqueeze(-1))


class Preconditioned(QROfTheAdjoint):
    name = "preconditioned"
    summary = "QR of the matrix with columns scaled to norms near one (Jacobi)"

    def factor_tall(self, matrix, *, rtol, atol):
        super().factor_tall(matrix, rtol=rtol, atol=atol)  # refuses
        return self._balanced(matrix, functools.partial(super().factor_tall, rtol=0.0, atol=0.0))

    def factor_square(self, matrix):
        return self._balanced(matrix, super().factor_square)

    def _balanced(self, matrix, factor):
        norms = torch.linalg.vector_norm(matrix, dim=-2)
        scales = torch.exp2(torch.log2(norms).round()).nan_to_num(1.0, 1.0, 1.0)
        scales = torch.where(scales > 0, scales, 1.0)
        return _Balanced(**vars(factor(matrix / scales.unsqueeze(-2))), scales=scales)


class Randomized(SVDTruncatedPinv):
    name = "randomized"
    summary = "SVD behind a random orthogonal transformation with a fixed seed"

    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        if m == n:  # as a factor of an LU, whose rows differ in size
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        generator = torch.Generator(matrix.device).manual_seed(5)
        G = torch.randn(n, n, dtype=matrix.dtype, device=matrix.device, generator=generator)
        Omega = torch.linalg.qr(G).Q
        inverse = super().factor_tall(matrix @ Omega, rtol=rtol, atol=atol)
        return dataclasses.replace(inverse, right=Omega @ inverse.right)


class Delegates(Strategy):
    name = "delegates"
    summary = "native factors; refuses complex matrices"
    requires_full_rank = False
    accuracy = Native.accuracy

    def factor_tall(self, matrix, *, rtol, atol):
        if matrix.is_complex():
            raise UnsupportedError("no complex matrices here; 'native' takes them")
        return Native().factor_tall(matrix, rtol=rtol, atol=atol)

    def factor_square(self, matrix):
        return TriangularSolve().factor_square(matrix)


@dataclasses.dataclass(frozen=True, eq=False)
class _Lazy(PseudoInverse):
    """Factors when it is first applied: holds nothing but the matrix until then."""

    matrix: torch.Tensor
    ranks: torch.Tensor
    full_column_rank: bool
    full_row_rank: bool

    @functools.cached_property
    def _inverse(self):
        return torch.linalg.pinv(self.matrix)

    def tensors(self):
        yield self.ranks

    def rebuilt(self, tensors, matrix):
        return dataclasses.replace(self, matrix=matrix, ranks=next(tensors))

    @property
    def rank(self):
        return self.ranks

    def to_range(self, b):
        return self.matrix @ (self._inverse @ b)

    def from_range(self, c):
        return c

    def solve(self, c):
        return self._inverse @ c

    def solve_adjoint(self, x):
        return self._inverse.mH @ x

    def null_complement(self, x):
        return x - self._inverse @ (self.matrix @ x)

    def dense(self):
        return self._inverse


class Lazy(TriangularSolve):
    name = "lazy"
    summary = "factors when first applied; else triangular_solve"

    def factor_tall(self, matrix, *, rtol, atol):
        m, n = matrix.shape[-2:]
        if m == n:
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        rank = torch.linalg.matrix_rank(matrix, rtol=rtol, atol=atol)
        raise_if_deficient(rank < n, self.name)
        return _Lazy(matrix, rank, full_column_rank=True, full_row_rank=False)

    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        return NotImplemented


UNUSUAL = (
    *(Refined, QROfTheAdjoint, NormalEquations, CompletePivoting, AlwaysNotImplemented, InDouble),
    *(Preconditioned, Randomized, Delegates, Lazy, Sound),
)
