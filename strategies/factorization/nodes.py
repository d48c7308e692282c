"""The autograd functions of a factor where nothing but a backward can be asked for.

`Accumulation` is the identity, between A and all uses of its factor. Each use, `Application` and
`Determinant`, gives it a `FactorCotangent`; autograd adds these up, and the sum is pulled back there, once:
a solve adds outer products of few columns to it, a determinant a multiple of A⁻ᴴ. As matrices they would
take n² numbers and a product for each use; as this they take the columns, and are multiplied once.
A backward that is differentiated itself has the derivatives of `strategies.factorization.operators`.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from strategies.autograd.derivatives import eager_mode, spread, total
from strategies.autograd.nodes import is_opaque
from strategies.autograd.precision import full_precision
from strategies.autograd.rule import Gradients
from strategies.factorization import operators
from strategies.factorization.kinds import Form
from strategies.factorization.operators import APPLICATION, DETERMINANT
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.memory import with_memory


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
        (A, X, B, *held), G = ctx.saved_tensors, with_memory(G)
        gradients: Gradients
        with full_precision(A.device, A.dtype):
            if torch.is_grad_enabled() or is_opaque(G):
                needed = ctx.needs_input_grad[2:4]
                at = operators.recorded((A, B, *held), ctx.form, ctx.adjoint, (X,))
                gradients = spread(APPLICATION.derive("backward", at, [G], needed), needed)
            else:
                inverse = ctx.form.inverse(tuple(held), A)
                (left, right), of_rhs = operators.outer_factors(
                    inverse, A, B, X, G, adjoint=ctx.adjoint
                )
                of_matrix = None
                if ctx.needs_input_grad[2]:
                    of_matrix = FactorCotangent(A, left, right, None, inverse, ctx.form)
                gradients = of_matrix, of_rhs
        return (None, None, *gradients, *[None] * len(held))


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
        cotangents = tuple(map(with_memory, cotangents))
        with full_precision(A.device, A.dtype):
            if torch.is_grad_enabled() or any(map(is_opaque, cotangents)):
                at = operators.recorded((A, *held), ctx.form, len(outputs) > 1, outputs)
                (of_matrix,) = DETERMINANT.derive("backward", at, cotangents, [True])
            else:
                scale = operators.determinant_scale(outputs, cotangents)
                inverse = ctx.form.inverse(held, A)
                of_matrix = FactorCotangent(A, [], [], scale, inverse, ctx.form)
        return (None, None, of_matrix, *[None] * len(held))


class FactorCotangent(Tensor):
    """Σ left rightᴴ + scale A⁻ᴴ + matrix, or the Hermitian part of it, of the shape of A, as `like` is.

    Autograd adds the cotangents of all uses of a tensor; the sum of two of these has both lists. Any other
    operation forms the matrix first. Those of `left`, (..., m, k), and `right`, (..., n, k), may have any
    numbers of columns. `matrix` is a part of the sum that is multiplied already.
    """

    @staticmethod
    def __new__(cls, like: Tensor, *_: Any) -> Self:
        made: Any = Tensor._make_wrapper_subclass
        return made(cls, like.shape, dtype=like.dtype, device=like.device)

    def __init__(
        self,
        like: Tensor,
        left: Sequence[Tensor],
        right: Sequence[Tensor],
        scale: Tensor | None,
        inverse: PseudoInverse,
        form: Form,
        matrix: Tensor | None = None,
    ) -> None:
        self.left, self.right, self.scale = list(left), list(right), scale
        self.pinv, self.form, self.matrix = inverse, form, matrix
        if sum(each.shape[-1] for each in self.left) > min(like.shape[-2:]):
            # More columns than the matrix has take more memory than it.
            self.matrix = total(matrix, operators.outer_product(self.left, self.right))
            self.left, self.right = [], []

    def dense(self) -> Tensor:
        """The matrix."""
        result = functools.reduce(Tensor.add_, self._parts())
        # In place: arrays of n×n numbers that are new take longer to be there than to be written.
        return result.add_(result.mH.contiguous()).mul_(0.5) if self.form.is_hermitian else result

    def _parts(self) -> Iterator[Tensor]:
        if self.matrix is not None:
            yield self.matrix.clone()
        if self.scale is not None:
            adjoint = self.pinv if self.form.is_hermitian else self.pinv.adjoint
            yield self.scale[..., None, None] * adjoint.dense()
        if self.left:
            yield operators.outer_product(self.left, self.right)

    def _plus(self, other: Self) -> Self:
        return type(self)(
            self,
            self.left + other.left,
            self.right + other.right,
            total(self.scale, other.scale),
            self.pinv,
            self.form,
            total(self.matrix, other.matrix),
        )

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # called with defaults missing
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        is_sum = func is torch.ops.aten.add.Tensor and len(args) == 2 and not kwargs
        # PyTorch has conjugate views switched off here.
        with eager_mode(grad=False):
            if is_sum and all(isinstance(each, cls) for each in args):
                return args[0]._plus(args[1])
            args, kwargs = tree_map_only(cls, lambda each: each.dense(), (args, kwargs or {}))
            return func(*args, **kwargs)
