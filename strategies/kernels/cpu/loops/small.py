"""Elimination and substitution for matrices so small that to call LAPACK takes longer than to compute.

Pivots, factors and their layout are those of LAPACK; matrices hold their columns one after the other.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import Array, compiled

MOST = 8
"""Rows and columns up to which these are faster, as measured in batches."""

MOST_OF_SUBSTITUTION = 32
"""Entries of the right-hand sides up to which substitution with a triangle is."""


@compiled
def modulus(x: complex) -> float:
    """What LAPACK compares to find a pivot: without a square root, and thus up to √2 times as much."""
    return abs(x.real) + abs(x.imag)


@compiled
def eliminate_small(F: Array, swaps: Array) -> bool:
    """A = P L U in place; False where there is no pivot, and nothing is to be read then."""
    m, n = F.shape
    for k in range(min(m, n)):
        pivot, largest = k, modulus(F[k, k])
        for i in range(k + 1, m):
            size = modulus(F[i, k])
            if size > largest:
                pivot, largest = i, size
        swaps[k] = pivot + 1
        if not largest > 0:
            return False
        if pivot != k:
            for j in range(n):
                F[k, j], F[pivot, j] = F[pivot, j], F[k, j]
        for i in range(k + 1, m):
            F[i, k] /= F[k, k]
        for j in range(k + 1, n):
            for i in range(k + 1, m):
                F[i, j] -= F[i, k] * F[k, j]
    return True


@compiled
def solve_small(LU: Array, swaps: Array, X: Array) -> None:
    """X ← U⁻¹ L⁻¹ Pᵀ X."""
    n = len(LU)
    for j in range(X.shape[1]):
        for k in range(n):
            other = swaps[k] - 1
            X[k, j], X[other, j] = X[other, j], X[k, j]
        for k in range(n):
            for i in range(k + 1, n):
                X[i, j] -= LU[i, k] * X[k, j]
        for k in range(n - 1, -1, -1):
            X[k, j] /= LU[k, k]
            for i in range(k):
                X[i, j] -= LU[i, k] * X[k, j]


@compiled
def solve_lower_small(L: Array, X: Array) -> None:
    """X ← L⁻¹ X."""
    n = len(L)
    for j in range(X.shape[1]):
        for k in range(n):
            X[k, j] /= L[k, k]
            for i in range(k + 1, n):
                X[i, j] -= L[i, k] * X[k, j]


@compiled
def solve_lower_adjoint_small(L: Array, X: Array) -> None:
    """X ← L⁻ᴴ X."""
    n = len(L)
    for j in range(X.shape[1]):
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                X[k, j] -= np.conj(L[i, k]) * X[i, j]
            X[k, j] /= np.conj(L[k, k])


@compiled
def multiply_inverse_small(LU: Array, X: Array) -> None:
    """X ← U⁻¹ L⁻¹ X for a lower triangular X."""
    n = len(LU)
    for j in range(n):
        for k in range(j, n):
            for i in range(k + 1, n):
                X[i, j] -= LU[i, k] * X[k, j]
    for k in range(n - 1, -1, -1):
        reciprocal = 1 / LU[k, k]
        for j in range(n):
            X[k, j] *= reciprocal
            for i in range(k):
                X[i, j] -= LU[i, k] * X[k, j]
