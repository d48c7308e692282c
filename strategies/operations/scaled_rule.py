"""Operations that are homogeneous in their inputs, computed at any scale of them.

If A, B and the cotangent G of the result are multiplied by powers of two, so are the result and the
gradients: nothing is rounded. What is computed between them may leave the range of the dtype much
earlier: the gradient of least squares holds G / A² beside B. Inputs that are far from one are therefore
brought there first, each matrix of a batch by itself.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from strategies.autograd import cpp
from strategies.autograd.fast_path import Explicit, SecondBackward, SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.rule import Gradients, Rule, Tensors
from strategies.errors import LinAlgError
from strategies.factors.condition import frobenius_norms
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import powers_of_two
from strategies.formulas.matrices import identity_where, nan_where
from strategies.kernels.memory import is_addressable
from strategies.strategy import Saved, Strategy

_MODERATE = {
    torch.float32: 2.0**21,
    torch.float64: 2.0**170,
    torch.complex64: 2.0**21,
    torch.complex128: 2.0**170,
}
"""Norms from one over this to this need no scaling: B G / A² takes two thirds of the exponents then,
and leaves the rest to κ²."""

_OF_ZERO = -(2**14)
"""Stands for the exponent of zero: less than that of any number."""


Factored = tuple[Tensor, PseudoInverse]
"""The value of an operation, and the factor of A."""


class ScaledRule(Rule):
    """A rule for f(A, …), homogeneous in each of its inputs.

    The gradient of an input is homogeneous in the cotangent (degree 1) and in all inputs, too, of one
    degree less in that input itself.

    A matrix A with an infinite or undefined entry is left out of the computation: what belongs to it
    is NaN, and nothing else of the batch is.

    Attributes:
        degrees: of f, for each input.
        refuses_nan: whether NaN in A is an error, as it is in the function of `torch.linalg`.
    """

    degrees: ClassVar[tuple[int, ...]]
    refuses_nan: ClassVar[bool] = False

    @abstractmethod
    def by_factor(self, strategy: Strategy, *inputs: Tensor, **options: Any) -> Factored:
        """The value of f by the factor of a strategy that has no `<name>_forward`, and the factor."""

    @abstractmethod
    def gradient_by_factor(self, saved: Saved, cotangent: Tensor, need_matrix: bool) -> Any:
        """The gradient of A, or those of A and B, by the factor, where there is no `<name>_backward`."""

    def compute(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        """`Rule.forward`, for norms of the inputs that are not far from one."""
        result, inverse = strategy.own(f"{self.name}_forward", self.by_factor, *inputs)
        return (result,), inverse

    def gradients(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        """`Rule.backward`, likewise."""

        def by_factor(
            _: Strategy, at: Saved, cotangent: Tensor, *, need_matrix: bool = True
        ) -> Any:
            return self.gradient_by_factor(at, cotangent, need_matrix)

        options = {"need_matrix": needed[0]} if self.arity > 1 else {}
        found = strategy.own(f"{self.name}_backward", by_factor, saved, *cotangents, **options)
        return found if self.arity > 1 else (found,)

    def read(self, inputs: Tensors) -> Tensors:
        """The inputs with zeros for entries that f does not read."""
        return inputs

    def with_scaled_options(self, exponents: Tensor) -> Self:
        """The rule with the options that mean the same for A times 2^exponents; int, (...)."""
        return self

    def unscale_outputs(self, outputs: Tensors, _exponents: Tensor) -> Tensors:
        """The outputs other than f for A divided by 2^exponents again."""
        return outputs

    def saved_inputs(self, inputs: Tensors, inverse: PseudoInverse | None) -> Tensors:
        if inverse is not None:
            return super().saved_inputs(inputs, inverse)
        # The backward computes again near one, from inputs that the caller may overwrite.
        return tuple(
            each.clone() if i in self.unread_inputs else each for i, each in enumerate(inputs)
        )

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse | None]:
        if all(map(is_in_safe_range, read := self.read(inputs))):
            return self.compute(strategy, *inputs)
        inputs = read
        if self.refuses_nan and bool(inputs[0].isnan().any()):
            raise LinAlgError("the input matrix contained non-finite values")
        near, powers = _near_and_finite(inputs)
        (result, *others), _ = self.with_scaled_options(-powers[0]).compute(strategy, *near)
        result = times_power_of_two(result, self._degree(powers))
        result = nan_where(_is_not_finite(inputs[0]), result)
        # No factors: the backward sees by that where it is.
        return (result, *self.unscale_outputs(tuple(others), powers[0])), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        power = _power(cotangents)
        near_cotangents = cast(Tensors, _scaled(cotangents, -power))
        if cast("PseudoInverse | None", saved.inverse) is not None:  # all of A is finite then
            return _scaled(self.gradients(strategy, saved, near_cotangents, needed), power)
        inputs = self.read(saved.inputs)
        near, powers = _near_and_finite(inputs)
        rule = self.with_scaled_options(-powers[0])
        outputs, inverse = rule.compute(strategy, *near)
        found = rule.gradients(strategy, Saved(inverse, near, outputs), near_cotangents, needed)
        total, undefined = power + self._degree(powers), _is_not_finite(inputs[0])
        return tuple(
            None if each is None else nan_where(undefined, times_power_of_two(each, total - own))
            for each, own in zip(found, powers, strict=True)
        )

    def _degree(self, powers: Sequence[Tensor]) -> Tensor:
        pairs = zip(self.degrees, powers, strict=True)
        return torch.stack([degree * power for degree, power in pairs]).sum(0)


def times_power_of_two(matrices: Tensor, exponents: Tensor) -> Tensor:
    """Each matrix, (..., m, n), times 2^exponents, int (...): exact, but for over- and underflow."""
    return powers_of_two.times_power_of_two(matrices, exponents[..., None, None])


def are_moderate(matrices: Tensor) -> bool:
    """Whether the norm of each matrix is not far from one, as zero is."""
    return matrices.numel() == 0 or _within(_MODERATE[matrices.dtype], *_extreme_norms(matrices))


def is_in_safe_range(matrices: Tensor) -> bool:
    """Whether the norm of each matrix is zero or not far from one."""
    if matrices.numel() == 0:
        return True
    most = _MODERATE[matrices.dtype]
    least_norm, largest_norm = _extreme_norms(matrices)
    if _within(most, least_norm, largest_norm):
        return True
    if not (least_norm == 0 and largest_norm < most):
        return False
    sizes = largest_entries(matrices)
    return bool(((sizes == 0) | (sizes > 1 / most)).all())


def _common_exponent(matrices: Sequence[Tensor]) -> int | None:
    """Of a power of two, over which all matrices have norms that are not far from one; None if none is."""
    norms = [_extreme_norms(each) for each in matrices if each.numel()]
    if all(each.ndim == 2 for each in matrices):  # what is NaN is so at any scale
        norms = [each for each in norms if not math.isnan(each[1])]
    if not norms:
        return 0
    most = _MODERATE[matrices[0].dtype]
    least, largest = min(least for least, _ in norms), max(largest for _, largest in norms)
    if _within(most, least, largest):
        return 0
    if not most**-3 < least <= largest < most**3:  # squares, of which norms are made, are in range
        return 0 if all(map(is_in_safe_range, matrices)) else None
    exponent = round(math.log2(least) / 2 + math.log2(largest) / 2)
    scale = 2.0**-exponent
    return exponent if _within(most, least * scale, largest * scale) else None


def _scaled(matrices: Gradients, exponent: int | Tensor) -> Gradients:
    """The matrices times 2^exponent: a sum of two common ones at most, or one for each of the batch."""
    if isinstance(exponent, Tensor):
        return tuple(
            None if each is None else times_power_of_two(each, exponent) for each in matrices
        )
    if not exponent:
        return matrices
    half = exponent // 2  # of which the power is a number even if that of the sum is not
    return tuple(
        None if each is None else each * 2.0**half * 2.0 ** (exponent - half) for each in matrices
    )


def _extreme_norms(matrices: Tensor) -> tuple[float, float]:
    if (found := cpp.extreme_norms(matrices)) is not None:
        return found
    if matrices.ndim == 2:
        norm = torch.linalg.vector_norm(matrices).item()
        return norm, norm
    return _extremes(frobenius_norms(_side_by_side(matrices)))


def _extremes(numbers: Tensor) -> tuple[float, float]:
    if forward_ad._current_level >= 0:  # in torch 2.9 aminmax has no tangent
        numbers = numbers.detach()
    least, largest = torch.stack(numbers.aminmax()).tolist()
    return least, largest


def are_in_safe_range(numbers: Tensor) -> bool:
    """Whether all of these real numbers are positive and not far from one."""
    if numbers.numel() == 0:
        return True
    return _within(_MODERATE[numbers.dtype], *_extremes(numbers))


def _within(most: float, least: float, largest: float) -> bool:
    """Whether both numbers are positive, less than the most, and more than one over it."""
    return 1 / most < least and largest < most


def _side_by_side(matrices: Tensor) -> Tensor:
    """A copy of matrices whose entries are far apart in memory.

    So they are in images that were permuted to have a matrix for each pixel, and torch takes twenty times
    as long for a norm as for a copy.
    """
    is_dense = matrices.is_contiguous() or matrices.mT.is_contiguous()
    return matrices if is_dense else matrices.contiguous()


def largest_entries(matrices: Tensor) -> Tensor:
    """The largest modulus of real and imaginary parts of each matrix, (...)."""
    if matrices.numel() == 0:
        return matrices.new_zeros(matrices.shape[:-2], dtype=matrices.dtype.to_real())
    if matrices.is_complex():
        matrices = torch.view_as_real(matrices.resolve_conj()).flatten(-2)
    return matrices.abs().amax((-2, -1))


def normalize(matrices: Sequence[Tensor]) -> tuple[Tensors, list[Tensor]]:
    """The matrices divided by powers of two near their largest entries, and these, int (...)."""
    powers = [_powers(largest_entries(each)) for each in matrices]
    near = (times_power_of_two(each, -power) for each, power in zip(matrices, powers, strict=True))
    return tuple(near), powers


def exponents(matrices: Tensor) -> Tensor:
    """Of the largest entry of each matrix; that of zero is below all others, that of NaN is none."""
    sizes = largest_entries(matrices)
    return _powers(sizes).masked_fill(sizes == 0, _OF_ZERO)


def _powers(sizes: Tensor) -> Tensor:
    return torch.where(sizes.isfinite(), torch.frexp(sizes)[1], 0)


def with_normalized_cotangents(explicit: Explicit) -> Explicit:
    """An explicit gradient, which is linear in cotangents, for those that are far from one.

    Others are taken as they are, and so are those of transforms, whose values nobody can look at.
    """

    @functools.wraps(explicit)
    def gradients(
        strategy: Strategy,
        inputs: Gradients,
        outputs: Tensors,
        cotangents: Tensors,
        *tolerances: float,
    ) -> Tensors:
        if not all(map(is_addressable, cotangents)):
            return explicit(strategy, inputs, outputs, cotangents, *tolerances)
        power = _power(cotangents)
        near = cast(Tensors, _scaled(cotangents, -power))
        found = explicit(strategy, inputs, outputs, near, *tolerances)
        return cast(Tensors, _scaled(found, power))

    return gradients


def with_normalized_directions(second_backward: SecondBackward) -> SecondBackward:
    """A second backward, linear in cotangents and in directions, for those that are far from one."""

    @functools.wraps(second_backward)
    def found(
        computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
    ) -> SecondGradients | None:
        of_cotangents, of_directions = _power(cotangents), _power(directions)
        second = second_backward(
            computed,
            _scaled(gradients, -of_cotangents),
            _scaled(cotangents, -of_cotangents),
            _scaled(directions, -of_directions),
        )
        if second is None:
            return None
        of_both = of_cotangents + of_directions
        powers = of_both, of_both, of_directions
        by_inputs, by_outputs, by_cotangents = map(_scaled, second, powers)
        return by_inputs, by_outputs, by_cotangents

    return found


def _power(matrices: Gradients) -> int | Tensor:
    """The common exponent; or for each matrix of the batch that of the largest, 0 where all are zero."""
    given = [each for each in matrices if each is not None]
    if (common := _common_exponent(given)) is not None:
        return common
    found = functools.reduce(torch.maximum, map(exponents, given))
    # The power that is no number would make zeros of what a zero cotangent is multiplied by.
    return found.masked_fill(found == _OF_ZERO, 0)


def _near_and_finite(inputs: Tensors) -> tuple[Tensors, list[Tensor]]:
    """The inputs, normalized, with an identity for each A that is not finite."""
    (A, *others), powers = normalize(inputs)
    return (identity_where(_is_not_finite(A), A), *others), powers


def _is_not_finite(matrices: Tensor) -> Tensor:
    return ~largest_entries(matrices).isfinite()
