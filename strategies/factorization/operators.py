"""What a factor does, as operators of PyTorch's dispatcher: in every mode, to every order.

A factor is of a matrix A, and what is held of A is constant. The solution X = A⁺B is then a function of A
and B that is computed by what is held, and its derivatives are such functions again (Giles 2008, section
2.3.1; Golub & Pereyra 1973, eq. 4.12):

    B̄ = A⁺ᴴ G      Ā = −B̄ Xᴴ + …      dX = A⁺ (dB − dA X) + …

So derivatives of any order, in any mode, take no other factorization than the one there is.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from strategies.autograd.derivatives import eager_mode, spread
from strategies.autograd.levels import forward_mode
from strategies.autograd.nodes import is_batched_gradient
from strategies.autograd.precision import full_precision
from strategies.autograd.registered import Call, Recorded, Registered
from strategies.autograd.rule import Tensors
from strategies.autograd.transforms import Dims
from strategies.factorization.kinds import KINDS, Form
from strategies.factors.dense import WithMatrix
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import det, lstsq
from strategies.formulas.domains import hermitian_part
from strategies.kernels.memory import materialized

_FORM = ("str kind", "int? rank", "bool forms_inverse")


def _written(form: Form) -> tuple[str, int | None, bool]:
    return form.kind, form.rank, form.forms_inverse


def _form(kind: str, rank: int | None, forms_inverse: bool) -> Form:
    return KINDS[kind](rank, forms_inverse)


def factorize(A: Tensor, form: Form) -> Tensors:
    """What is held of A, or LinAlgError if A has no such factorization."""
    return tuple(_FACTORIZATION.operator(A, *_written(form)))


@dataclass(frozen=True, eq=False)
class Formal(WithMatrix):
    """A⁺ as a differentiable function of A, by what is held of it."""

    matrix: Tensor
    held: Tensors
    form: Form
    full_column_rank: bool
    full_row_rank: bool

    @classmethod
    def of(cls, A: Tensor, held: Sequence[Tensor], form: Form) -> Self:
        return cls(A, tuple(held), form, *form.is_full(A))

    @property
    def rank(self) -> Tensor:
        return self.form.inverse(self.held, self.matrix).rank

    def dense(self) -> Tensor:
        return self.solve(identities(self.matrix, self.matrix.shape[-2]))

    def solve(self, c: Tensor) -> Tensor:
        if is_batched_gradient(c):  # products are operators of PyTorch
            return self.dense() @ c
        return application(self.matrix, c, self.held, self.form, adjoint=False)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        if is_batched_gradient(x):
            return self.dense().mH @ x
        return application(self.matrix, x, self.held, self.form, adjoint=True)


def application(
    A: Tensor, B: Tensor, held: Sequence[Tensor], form: Form, *, adjoint: bool
) -> Tensor:
    """A⁺B, or A⁺ᴴB, for batches alike, differentiable in A, (..., m, n), and B, (..., m or n, k)."""
    return APPLICATION.operator(A, B, list(held), *_written(form), adjoint)[0]


def determinant(
    A: Tensor, held: Sequence[Tensor], form: Form, *, logarithm: bool
) -> Sequence[Tensor]:
    """The determinant, or its sign and the logarithm of its modulus, differentiable in A."""
    return DETERMINANT.operator(A, list(held), *_written(form), logarithm)


def recorded(operands: Tensors, form: Form, option: bool, outputs: Sequence[Tensor]) -> Recorded:
    """A call of `application` or `determinant`, of A, and B, and what is held of A."""
    return Recorded(operands, (*_written(form), option), outputs)


def identities(A: Tensor, size: int) -> Tensor:
    """An identity for each matrix of a batch."""
    return torch.eye(size, dtype=A.dtype, device=A.device).expand(*A.shape[:-2], size, size)


def outer_factors(
    inverse: PseudoInverse, A: Tensor, B: Tensor, X: Tensor, G: Tensor, *, adjoint: bool
) -> tuple[tuple[list[Tensor], list[Tensor]], Tensor]:
    """Ā as a sum of products `left @ right.mH`, and B̄, from the cotangent G of X = A⁺B or A⁺ᴴB."""
    if not adjoint:
        return lstsq.outer_factors(inverse, A, B, X, G)
    (left, right), rhs_gradient = lstsq.outer_factors(inverse.adjoint, A.mH, B, X, G)
    return (right, left), rhs_gradient


def outer_product(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """Σ left rightᴴ."""
    return torch.cat([*left], -1) @ torch.cat([*right], -1).mH


def determinant_scale(outputs: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Tensor:
    """What multiplies A⁻ᴴ in Ā, from what `determinant` returns and its cotangents: (...)."""
    if len(outputs) == 1:
        return cotangents[0] * outputs[0].conj()
    return det.slogdet_scale(outputs[0], *cotangents)


@contextlib.contextmanager
def _below_autograd(A: Tensor) -> Iterator[None]:
    with eager_mode(grad=False), forward_mode(on=False), full_precision(A.device, A.dtype):
        yield


class _OfFactor(Registered):
    """An operator of A, further operands, and what is held of A, which is constant."""

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        *operands, held = arguments[: self.arity + 1]
        return [*operands, *held], arguments[self.arity + 1 :]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(*operands[: self.arity], list(operands[self.arity :]), *rest)

    def inverse(self, at: Recorded) -> Formal:
        """A⁺ as a function of A."""
        return Formal.of(at.operands[0], at.operands[self.arity :], _form(*at.rest[:3]))


class _Factorization(Registered):
    """What is held of A, without derivatives."""

    arity, differentiable = 1, 0

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        A, *form = arguments
        with _below_autograd(A):
            return list(_form(*form).held(materialized(A)))

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        A, *form = arguments
        return list(_form(*form).fake(A))

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arguments[:1], arguments[1:]

    def call(self, operands: Sequence[Tensor], rest: Sequence[Any]) -> Sequence[Tensor]:
        return self.operator(*operands, *rest)

    def derive(self, kind: str, *_: Any) -> Sequence[Tensor]:
        return []


class _Application(_OfFactor):
    """A⁺B or A⁺ᴴB."""

    arity = 2

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        A, B, held, *form, adjoint = arguments
        with _below_autograd(A):
            inverse = _form(*form).inverse(tuple(held), A)
            X = (inverse.apply_adjoint if adjoint else inverse.apply)(materialized(B))
            return [X.contiguous().clone() if X.is_conj() or X._is_view() else X.contiguous()]

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        A, B, *_, adjoint = arguments
        return [B.new_empty(*B.shape[:-2], A.shape[-2 if adjoint else -1], B.shape[-1])]

    def derive(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        inverse, adjoint = self.inverse(at), at.rest[-1]
        (A, B, *_), (X,), is_hermitian = at.operands, at.outputs, inverse.form.is_hermitian
        if kind == "forward":
            dA, dB, *_ = spread(given, needed)
            if dA is None and dB is None:
                return [torch.zeros_like(X)]
            if dA is not None:
                dA = hermitian_part(dA) if is_hermitian else dA
                dA = dA.mH if adjoint else dA
            of_adjoint = (inverse.adjoint, A.mH) if adjoint else (inverse, A)
            return [lstsq.jvp(*of_adjoint, B, X, dA, dB)]
        factors, of_rhs = outer_factors(inverse, A, B, X, *given, adjoint=adjoint)
        found = []
        if needed[0]:
            of_matrix = outer_product(*factors)
            found.append(hermitian_part(of_matrix) if is_hermitian else of_matrix)
        return [*found, of_rhs] if needed[1] else found

    def over_batch(
        self, call: Call, size: int, tensors: Sequence[Tensor], dims: Dims
    ) -> tuple[Sequence[Tensor], Dims]:
        """Right-hand sides of one matrix are columns."""
        if any(dim is not None for i, dim in enumerate(dims) if i != 1):
            return super().over_batch(call, size, tensors, dims)
        A, B, *held = tensors
        columns = B.movedim(dims[1] or 0, -2)
        (X,) = call.dispatched(A, columns.flatten(-2), *held)
        return [X.reshape(*X.shape[:-1], *columns.shape[-2:]).movedim(-2, 0)], [0]


class _Determinant(_OfFactor):
    """The determinant, or its sign and the logarithm of its modulus.

    Not both: where the one is not in range, its cotangent of zero would make NaN for the other.
    """

    arity = 1

    def compute(self, *arguments: Any) -> Sequence[Tensor]:
        A, held, *form, logarithm = arguments
        with _below_autograd(A):
            return list(_form(*form).determinant(tuple(held), logarithm))

    def fake(self, *arguments: Any) -> Sequence[Tensor]:
        A, *_, logarithm = arguments
        value = A.new_empty(A.shape[:-2])
        return [value, value.new_empty(value.shape, dtype=A.dtype.to_real())][: 1 + logarithm]

    def derive(
        self, kind: str, at: Recorded, given: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Tensor]:
        inverse, (A, *_), (first, *others) = self.inverse(at), at.operands, at.outputs
        is_hermitian = inverse.form.is_hermitian
        if kind == "forward":
            dA, *_ = spread(given, needed)
            if dA is None:
                return [torch.zeros_like(each) for each in at.outputs]
            dA = hermitian_part(dA) if is_hermitian else dA
            trace = (inverse.dense().mT * dA).sum((-2, -1))
            return det.slogdet_tangents(first, trace) if others else [trace * first]
        scale = determinant_scale(at.outputs, given)
        # The adjoint of A⁻¹, as the solution of the adjoint system.
        gradient = scale[..., None, None] * inverse.solve_adjoint(identities(A, A.shape[-1]))
        return [hermitian_part(gradient) if is_hermitian else gradient]


_FACTORIZATION = _Factorization("factorization", ("Tensor A", *_FORM), "Tensor[]")
APPLICATION = _Application(
    "factor_application",
    ("Tensor A", "Tensor B", "Tensor[] held", *_FORM, "bool adjoint"),
    "Tensor[]",
)
DETERMINANT = _Determinant(
    "factor_determinant", ("Tensor A", "Tensor[] held", *_FORM, "bool logarithm"), "Tensor[]"
)
