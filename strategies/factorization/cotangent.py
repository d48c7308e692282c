"""The cotangent of a factored matrix, kept as what it is made of until it is asked for.

Every solve adds outer products of few columns to it, every determinant a multiple of A⁻ᴴ. As matrices they
would take n² numbers and a product for each use; as this they take the columns, and are multiplied once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from strategies.autograd.derivatives import eager_mode


class FactorCotangent(Tensor):
    """Σ left rightᴴ + scale A⁻ᴴ + matrix, or the Hermitian part of it, of the shape of A, as `like` is.

    Autograd adds the cotangents of all uses of a tensor; the sum of two of these has both lists. Any other
    operation forms the matrix first. Those of `left`, (..., m, k), and `right`, (..., n, k), may have any
    numbers of columns. `matrix` is a part of the sum that is multiplied already.
    """

    @staticmethod
    def __new__(cls, like: Tensor, *_: Any) -> Self:
        made: Any = Tensor._make_wrapper_subclass
        result: Self = made(cls, like.shape, dtype=like.dtype, device=like.device)
        return result

    def __init__(
        self,
        like: Tensor,
        left: Sequence[Tensor],
        right: Sequence[Tensor],
        scale: Tensor | None,
        inverse_adjoint: Callable[[], Tensor],
        is_hermitian: bool,
        matrix: Tensor | None = None,
    ) -> None:
        self.left, self.right, self.scale = list(left), list(right), scale
        self.inverse_adjoint, self.is_hermitian = inverse_adjoint, is_hermitian
        self.matrix = matrix
        if sum(each.shape[-1] for each in self.left) > min(like.shape[-2:]):
            # More columns than the matrix has take more memory than it.
            self.matrix = _sum(matrix, outer_product(self.left, self.right))
            self.left, self.right = [], []

    def dense(self) -> Tensor:
        """The matrix."""
        parts = [] if self.matrix is None else [self.matrix.clone()]
        if self.scale is not None:
            parts.append(self.scale[..., None, None] * self.inverse_adjoint())
        if self.left:
            parts.append(outer_product(self.left, self.right))
        result = functools.reduce(Tensor.add_, parts)
        # In place: arrays of n×n numbers that are new take longer to be there than to be written.
        return result.add_(result.mH.contiguous()).mul_(0.5) if self.is_hermitian else result

    def _plus(self, other: FactorCotangent) -> FactorCotangent:
        return FactorCotangent(
            self,
            self.left + other.left,
            self.right + other.right,
            _sum(self.scale, other.scale),
            self.inverse_adjoint,
            self.is_hermitian,
            _sum(self.matrix, other.matrix),
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


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def outer_product(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """Σ left rightᴴ."""
    return torch.cat([*left], -1) @ torch.cat([*right], -1).mH
