"""The autograd functions of a factor where nothing but a backward can be asked for.

`Accumulation` is the identity, between A and all uses of its factor. Each use, `Application` and
`Determinant`, gives it a `FactorCotangent`; autograd adds these up, and the sum is pulled back there, once.
A backward that is differentiated itself has the derivatives of `strategies.factorization.operators`.
"""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from strategies.autograd.nodes import is_opaque
from strategies.autograd.precision import full_precision
from strategies.factorization.cotangent import FactorCotangent, outer_product
from strategies.factorization.kinds import Form
from strategies.factorization.operators import Formal, determinant_scale, outer_factors
from strategies.factors import Dense
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas.domains import hermitian_part
from strategies.kernels.memory import with_memory

Gradients = tuple[Tensor | None, ...]


class Accumulation(torch.autograd.Function):
    """A, as its factor has it: in the same memory, so that autograd knows when it is overwritten."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        return A.detach()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        if not isinstance(cotangent, FactorCotangent):
            return cotangent
        with full_precision(cotangent.device, cotangent.dtype):
            return cotangent.dense()


class Application(torch.autograd.Function):
    """A⁺B or A⁺ᴴB."""

    @staticmethod
    def forward(ctx: Any, form: Form, adjoint: bool, A: Tensor, B: Tensor, *held: Tensor) -> Tensor:
        ctx.form, ctx.adjoint = form, adjoint
        with full_precision(A.device, A.dtype):
            inverse = form.inverse(held, A)
            X = inverse.apply_adjoint(B) if adjoint else inverse.apply(B)
        X = X.clone() if X._is_view() else X
        # The residual alone reads B, which is zero where A is known to be nonsingular.
        ctx.save_for_backward(A, X, X if all(form.is_full(A)) else B, *held)
        return X

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> Gradients:
        A, X, B, *held = ctx.saved_tensors
        at = _Point.of(ctx.form, A, tuple(held), G)
        with full_precision(A.device, A.dtype):
            factors, of_rhs = outer_factors(
                at.inverse, A, B, X, with_memory(G), adjoint=ctx.adjoint
            )
            of_matrix = at.cotangent(*factors) if ctx.needs_input_grad[2] else None
        return (None, None, of_matrix, of_rhs, *[None] * len(held))


class Determinant(torch.autograd.Function):
    """The determinant, or its sign and the logarithm of its modulus."""

    @staticmethod
    def forward(
        ctx: Any, form: Form, logarithm: bool, A: Tensor, *held: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.form = form
        outputs = form.determinant(held, logarithm)
        ctx.save_for_backward(A, *outputs, *held)
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Gradients:
        A, *saved = ctx.saved_tensors
        outputs, held = saved[: len(cotangents)], tuple(saved[len(cotangents) :])
        at = _Point.of(ctx.form, A, held, *cotangents)
        scale = determinant_scale(outputs, tuple(map(with_memory, cotangents)))
        with full_precision(A.device, A.dtype):
            return (None, None, at.cotangent([], [], scale), *[None] * len(held))


class _Point(NamedTuple):
    """Where a backward is computed.

    Attributes:
        inverse: A⁺, differentiable where that is asked for.
        is_differentiated: whether cotangents of A are to be matrices, which autograd sees through.
    """

    form: Form
    matrix: Tensor
    inverse: PseudoInverse
    is_differentiated: bool

    @classmethod
    def of(cls, form: Form, A: Tensor, held: tuple[Tensor, ...], *cotangents: Tensor) -> Self:
        is_differentiated = torch.is_grad_enabled()
        inverse: PseudoInverse
        inverse = Formal.of(A, held, form) if is_differentiated else form.inverse(held, A)
        if any(map(is_opaque, cotangents)):
            # Products are operators of PyTorch.
            inverse = Dense(A, inverse.dense(), A, *form.is_full(A))
            is_differentiated = True
        return cls(form, A, inverse, is_differentiated)

    def cotangent(
        self, left: list[Tensor], right: list[Tensor], scale: Tensor | None = None
    ) -> Tensor:
        """Σ left rightᴴ, or scale A⁻ᴴ."""
        is_hermitian = self.form.is_hermitian
        if not self.is_differentiated:
            adjoint = self.inverse if is_hermitian else self.inverse.adjoint
            return FactorCotangent(self.matrix, left, right, scale, adjoint.dense, is_hermitian)
        if scale is None:
            found = outer_product(left, right)
        else:
            found = scale[..., None, None] * self.inverse.dense().mH
        return hermitian_part(found) if is_hermitian else found
