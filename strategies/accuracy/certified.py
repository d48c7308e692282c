"""A gradient whose error is known, and the comparison of a computed gradient with it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strategies.autograd.half_precision import HALF


@dataclass(frozen=True)
class ScaledPair:
    """A batch of matrices or vectors held as (high + low)·2^exponent, to about 106 bits.

    Two floats a number, (..., m, n) or (..., m), so that a float64 result can be compared near roundoff;
    one exponent a matrix, so that neither an entry nor a norm overflows or underflows.
    """

    high: NDArray[Any]
    low: NDArray[Any]
    exponent: NDArray[np.int32]

    def relative_errors(self, computed: Tensor) -> Tensor:
        """‖computed − exact‖_F / ‖exact‖_F of every matrix, float64 of shape (...).

        Where the exact matrix is zero the error is zero for a computed zero and otherwise
        infinite; it is infinite as well where the computed matrix is not finite.
        """
        if computed.shape != self.high.shape:
            raise ValueError(f"computed has shape {tuple(computed.shape)}, exact {self.high.shape}")
        values = as_array(computed)
        axes = tuple(range(self.exponent.ndim, self.high.ndim))
        with np.errstate(all="ignore"):
            norm = np.linalg.norm(self.high, axis=axes)
            errors = np.linalg.norm(self.difference(values), axis=axes) / norm
        of_zero = np.where(values.any(axes), math.inf, 0.0)
        errors = np.where(norm > 0, np.where(np.isnan(errors), math.inf, errors), of_zero)
        return torch.from_numpy(np.asarray(errors))

    def difference(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values minus exact ones, relative to 2^exponent."""
        # A complex result of a real problem is wrong by its imaginary part.
        values = values.astype(np.result_type(values, self.high))
        return times_power_of_two(values, -self.exponent) - self.high - self.low


@dataclass(frozen=True)
class Certified:
    """Exact gradients, one for each input, with the proof of how exact they are.

    Attributes:
        parts: the gradients in extended precision.
        radius: a proven bound on ‖error of the reference‖_F / ‖exact‖_F, the largest of all.
        bits: the working precision that achieved it, the largest of the batch.
    """

    parts: tuple[ScaledPair, ...]
    radius: float
    bits: int

    @property
    def gradients(self) -> tuple[Tensor, ...]:
        """The gradients rounded to float64 or complex128, infinite beyond, on the CPU."""
        with np.errstate(over="ignore"):
            arrays = [times_power_of_two(part.high, part.exponent) for part in self.parts]
        return tuple(map(torch.from_numpy, arrays))

    def relative_errors(self, computed: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Those of `ScaledPair`, a tensor for each input; ValueError if a number or shape differs."""
        pairs = zip(self.parts, computed, strict=True)
        return tuple(part.relative_errors(gradient) for part, gradient in pairs)

    def relative_error(self, computed: Sequence[Tensor]) -> float:
        """The largest of `relative_errors`; zero for an empty batch."""
        errors = self.relative_errors(computed)
        return max((float(error.max()) for error in errors if error.numel()), default=0.0)


def as_array(tensor: Tensor) -> NDArray[Any]:
    """A tensor in NumPy, its values unchanged; half precision, which NumPy has in part, in single."""
    if tensor.dtype in HALF:
        tensor = tensor.float()
    return tensor.detach().cpu().resolve_conj().resolve_neg().numpy()


def times_power_of_two(array: NDArray[Any], exponent: NDArray[np.int32]) -> NDArray[Any]:
    """Each matrix times 2^exponent, exactly but for overflow and underflow."""
    power = exponent.reshape(exponent.shape + (1,) * (array.ndim - exponent.ndim))
    if not np.iscomplexobj(array):
        return np.asarray(np.ldexp(array, power))
    # By parts, as the product of 1j and an infinite part is NaN.
    scaled = np.empty(np.broadcast_shapes(array.shape, power.shape), array.dtype)
    scaled.real, scaled.imag = np.ldexp(array.real, power), np.ldexp(array.imag, power)
    return scaled
