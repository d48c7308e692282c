"""Dual numbers over ball arithmetic: a value and its derivative along one direction.

Every formula of this package is written for matrices with `+`, `*`, `inv` and a few linear maps. Given
dual ones, x + εẋ with ε² = 0, it returns its own derivative along ẋ, enclosed as its value is: of a result
that is the Jacobian–vector product, of a gradient the Hessian–vector product (Griewank & Walther,
*Evaluating Derivatives*, 2nd ed. 2008, sections 3.1 and 5.1).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import acb, arb


@dataclass(frozen=True)
class Dual:
    """Balls, a matrix or a number, with their derivative, of the same shape."""

    value: Any
    tangent: Any

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.tangent + other.tangent)
        return Dual(self.value + other, self.tangent)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def __sub__(self, other: Any) -> Dual:
        return self + (-other)

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            tangent = self.tangent * other.value + self.value * other.tangent
            return Dual(self.value * other.value, tangent)
        return Dual(self.value * other, self.tangent * other)

    def __rmul__(self, other: Any) -> Dual:
        return Dual(other * self.value, other * self.tangent)

    def __truediv__(self, number: int) -> Dual:
        return Dual(self.value / number, self.tangent / number)

    def __getitem__(self, index: tuple[int, int]) -> Dual:
        return Dual(self.value[index], self.tangent[index])

    def __abs__(self) -> Dual:
        """|z| with the derivative Re(conj(sgn z) ż)."""
        sign = self.value.sgn()
        if isinstance(sign, arb):
            return Dual(abs(self.value), sign * self.tangent)
        return Dual(abs(self.value), (sign.conjugate() * self.tangent).real)

    def sgn(self) -> Dual:
        """S = z / |z| with the derivative s i Im(ż / z); that of a real number does not move."""
        sign = self.value.sgn()
        if isinstance(sign, arb):
            return Dual(sign, arb(0))
        return Dual(sign, sign * acb(0, (self.tangent / self.value).imag))

    def log(self) -> Dual:
        return Dual(self.value.log(), self.tangent / self.value)

    def inv(self) -> Dual:
        """A⁻¹ with the derivative −A⁻¹ Ȧ A⁻¹."""
        inverse = self.value.inv()
        return Dual(inverse, -(inverse * self.tangent * inverse))

    def det(self) -> Dual:
        """Det A with the derivative tr(adj(A) Ȧ), at every rank."""
        return Dual(self.value.det(), (adjugate(self.value) * self.tangent).trace())

    def contains(self, other: Any) -> bool:
        """Whether a constant is within the balls, and zero within those of the derivative."""
        return bool(self.value.contains(other)) and bool(self.tangent.contains(other * 0))

    def nrows(self) -> int:
        return int(self.value.nrows())

    def ncols(self) -> int:
        return int(self.value.ncols())

    def trace(self) -> Dual:
        return Dual(self.value.trace(), self.tangent.trace())


def adjugate(a: Any) -> Any:
    """Return adj(A), which is det(A) A⁻¹ where that exists, by a polynomial in A.

    Faddeev and LeVerrier: M₁ = I, Mₖ₊₁ = A Mₖ − tr(A Mₖ)/k I, adj(A) = (−1)ⁿ⁻¹ Mₙ.
    """
    size = a.nrows()
    plain = a.value if isinstance(a, Dual) else a
    found = identity = type(plain)(size, size, 1)
    for k in range(1, size):
        product = a * found
        found = product - identity * (product.trace() / k)
    return found if size % 2 else -found


def linear(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a linear map of its first argument take dual numbers, by applying it to both parts."""

    @functools.wraps(function)
    def of_either(a: Any, *arguments: Any) -> Any:
        if isinstance(a, Dual):
            return Dual(function(a.value, *arguments), function(a.tangent, *arguments))
        return function(a, *arguments)

    return of_either
