"""The kinds of factorization: what is held of a matrix, and what is read from it.

All methods are for plain tensors below autograd. What is held is a tuple of tensors whose number and shapes
follow from the shape of A, so that it can be what an operator of PyTorch's dispatcher returns.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strategies.autograd.rule import Tensors
from strategies.builtin.triangular_solve import by_qr
from strategies.errors import LinAlgError, UnsupportedError, raise_for_info, raise_if_not_finite
from strategies.factors import Dense, LUFactors, Orthogonal, Triangular
from strategies.factors.condition import frobenius_norms, has_grown, smallest_of_R
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.householder import qr
from strategies.factors.nonsingular import CholeskyFactor
from strategies.factors.orthogonal import SingularValues
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.factors.rank_guards import noise_level
from strategies.formulas.det import permutation_sign
from strategies.formulas.powers_of_two import product, times_power_of_two
from strategies.strategy import rank_threshold


@dataclass(frozen=True)
class Form(ABC):
    """A kind of factorization, as users write it in `kind=`, with the options of one call.

    Attributes:
        is_square: A is square and nonsingular.
        is_hermitian: A is Hermitian, and so is its gradient.
        rank: as stated, or None: it is to be decided.
        forms_inverse: A⁺ is held as a matrix, too, and products with it are what applies it.
    """

    kind: ClassVar[str]
    is_square: ClassVar[bool] = False
    is_hermitian: ClassVar[bool] = False

    rank: int | None = None
    forms_inverse: bool = False

    @abstractmethod
    def _factors(self, A: Tensor) -> Tensors:
        """The factors of A, (..., m, n); the message of an error names a kind that A has."""

    @abstractmethod
    def _fake_factors(self, A: Tensor) -> Tensors:
        """Tensors of the shapes, dtypes and strides of these."""

    @abstractmethod
    def _by_factors(self, held: Tensors, A: Tensor) -> PseudoInverse:
        """A⁺ by its factors, the first of what is held; of A, the shape is read."""

    def held(self, A: Tensor) -> Tensors:
        """What is held of A, below autograd; LinAlgError if A has no such factorization."""
        held = self._factors(A)
        if not self.forms_inverse:
            return held
        return *held, self._by_factors(held, A).dense().contiguous()

    def fake(self, A: Tensor) -> Tensors:
        """Tensors like these."""
        held = self._fake_factors(A)
        return (*held, A.new_empty(A.mT.shape)) if self.forms_inverse else held

    def inverse(self, held: Tensors, A: Tensor) -> PseudoInverse:
        """A⁺ by what is held."""
        inverse = self._by_factors(held, A)
        if not self.forms_inverse:
            return inverse
        return Dense(A, held[-1], inverse.rank, inverse.full_column_rank, inverse.full_row_rank)

    def determinant(self, held: Tensors, logarithm: bool) -> Tensors:
        """The determinant, (...), or its sign and the logarithm of its modulus; or UnsupportedError."""
        raise UnsupportedError(
            f"a factor of kind '{self.kind}' has no determinant; the kinds 'lu' and 'spd' have one"
        )

    def is_full(self, A: Tensor) -> tuple[bool, bool]:
        """Whether A is known to have full column rank, and full row rank."""
        m, n = A.shape[-2:]
        known = min(m, n) if self.rank is None else self.rank
        return known == n, known == m


class _LU(Form):
    """A = P L U by elimination with partial pivoting. Held: L and U packed, pivots."""

    kind = "lu"
    is_square = True

    def _factors(self, A: Tensor) -> Tensors:
        LU, pivots, info = lu_factor_ex(A)
        raise_for_info(info, "the matrix is singular: the pivot of column {0} is zero")
        if A.numel() and bool(has_grown(A, LU).any()):
            raise LinAlgError(
                "elements grow so much in the elimination that digits are lost; kind 'qr' loses none"
            )
        return _by_columns(LU), pivots

    def _fake_factors(self, A: Tensor) -> Tensors:
        return _by_columns(torch.empty_like(A)), A.new_empty(A.shape[:-1], dtype=torch.int32)

    def _by_factors(self, held: Tensors, A: Tensor) -> PseudoInverse:
        return LUFactors(*held[:2])

    def determinant(self, held: Tensors, logarithm: bool) -> Tensors:
        LU, pivots = held[:2]
        return _determinant(LU.diagonal(dim1=-2, dim2=-1), permutation_sign(LU, pivots), logarithm)


class _SPD(Form):
    """A = L Lᴴ, of which the lower triangle is read. Held: L."""

    kind = "spd"
    is_square = is_hermitian = True

    def _factors(self, A: Tensor) -> Tensors:
        L, info = torch.linalg.cholesky_ex(A)
        raise_for_info(
            info,
            "the leading minor of order {0} is not positive definite; kind 'lu' takes any square matrix",
        )
        return (_by_columns(L),)

    def _fake_factors(self, A: Tensor) -> Tensors:
        return (_by_columns(torch.empty_like(A)),)

    def _by_factors(self, held: Tensors, A: Tensor) -> PseudoInverse:
        return CholeskyFactor(held[0])

    def determinant(self, held: Tensors, logarithm: bool) -> Tensors:
        diagonal = held[0].diagonal(dim1=-2, dim2=-1)
        return _determinant(torch.cat((diagonal, diagonal), -1), diagonal.new_ones(()), logarithm)


class _QR(Form):
    """A = Q R of full rank, or Aᴴ = Q R where A is wide. Held: Q, R."""

    kind = "qr"

    def _factors(self, A: Tensor) -> Tensors:
        Q, R = qr(_tall(A))
        if self.rank is None and A.numel():
            deficient = ~(smallest_of_R(R) > noise_level(A) * frobenius_norms(A))
            if bool(deficient.any()):
                raise LinAlgError(
                    "the matrix has no full rank to working precision; kind 'svd' takes any, and rank= "
                    "states one"
                )
        return Q.contiguous(), R.contiguous()

    def _fake_factors(self, A: Tensor) -> Tensors:
        k = min(A.shape[-2:])
        tall = _tall(A).shape
        return A.new_empty(tall), A.new_empty(*tall[:-2], k, k)

    def _by_factors(self, held: Tensors, A: Tensor) -> PseudoInverse:
        inverse = by_qr(*held[:2])
        return inverse.adjoint if A.shape[-2] < A.shape[-1] else inverse


class _SVD(Form):
    """A = U diag(σ) Vᴴ of any rank, or Aᴴ where A is wide. Held: U, V, 1/σ, zero beyond the rank, σ, R.

    Singular values decide the rank. Where it is full, A = U R by QR takes the place of singular vectors,
    which are not accurate beside the small columns of a matrix whose columns are badly scaled.
    """

    kind = "svd"

    def _factors(self, A: Tensor) -> Tensors:
        Q, R = qr(_tall(A))
        U, values, Vh = torch.linalg.svd(R)
        raise_if_not_finite(values, A)
        k = values.shape[-1]
        if self.rank is None:
            largest = values.amax(-1) if k else values.sum(-1)
            kept = values > rank_threshold(largest, A.shape, None, None).unsqueeze(-1)
        else:
            kept = (torch.arange(k, device=A.device) < self.rank).expand(values.shape)
            if bool((kept & (values == 0)).any()):
                raise LinAlgError(
                    f"a matrix has fewer than the {self.rank} independent columns stated"
                )
        reciprocals = torch.where(kept, values.reciprocal(), 0)
        left = Q if bool(kept.all()) else (Q @ U) * kept.unsqueeze(-2)
        V = Vh.mH * kept.unsqueeze(-2)
        return tuple(each.contiguous() for each in (left, V, reciprocals, values, R))

    def _fake_factors(self, A: Tensor) -> Tensors:
        tall = _tall(A)
        *batch, _, k = tall.shape
        values = A.new_empty(*batch, k, dtype=A.dtype.to_real())
        square = A.new_empty(*batch, k, k)
        return A.new_empty(tall.shape), square, values, values.clone(), square.clone()

    def _by_factors(self, held: Tensors, A: Tensor) -> PseudoInverse:
        U, V, reciprocals, values, R = held[:5]
        by_values = SingularValues(reciprocals, values)
        is_full = bool((reciprocals != 0).all())
        core, right = (Triangular(R, Structure.UPPER), None) if is_full else (by_values, V)
        inverse = Orthogonal(U, core, right, by_values.rank, *self.is_full(_tall(A)))
        return inverse.adjoint if A.shape[-2] < A.shape[-1] else inverse

    def is_full(self, A: Tensor) -> tuple[bool, bool]:
        # Where the rank is decided, values tell: whether it is full is not known from shapes.
        return super().is_full(A) if self.rank is not None else (False, False)


KINDS: dict[str, type[Form]] = {form.kind: form for form in (_LU, _SPD, _QR, _SVD)}
"""By name."""


def _tall(A: Tensor) -> Tensor:
    return A.mH if A.shape[-2] < A.shape[-1] else A


def _by_columns(matrix: Tensor) -> Tensor:
    """In the layout of LAPACK, which then solves without a copy."""
    return matrix.mT.contiguous().mT


def _determinant(factors: Tensor, sign: Tensor, logarithm: bool) -> Tensors:
    mantissa, exponent = product(factors)
    mantissa = mantissa * sign
    if not logarithm:
        return (times_power_of_two(mantissa, exponent),)
    modulus = mantissa.abs()
    return mantissa.sgn(), modulus.log() + exponent.to(modulus.dtype) * math.log(2)
