"""Which two kernels do an operation on small matrices, and what passes between them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import cast

import torch

from strategies.kernels.cpu.problem import BY_LU, TRIANGULAR, KernelSpec, Problem
from strategies.kernels.cpu.tensor_specs import TensorSpec, columns, number, rows, vector

_MINORS = 3
"""Rows up to which the gradient of a determinant is by minors."""

_MOST_ENTRIES_OF_WIDE_QR = 2**17
"""Of a matrix, up to which its QR was measured to be faster in one call."""

_MOST_ENTRIES_OF_QR, _TALL = 2**18, 4
"""Of a matrix that has fewer rows than so many times its columns."""

_MOST_WORK_OF_COMPLEX_QR = 2**13
"""m n² of complex square matrices, up to which packs are faster than the operations of torch."""

_MOST_COLUMNS_OF_COD = 512
"""Of a matrix, or rows of a wide one, up to which pivots are found without blocks."""

_MOST_WORK_OF_MANY, _MOST_WORK_OF_MORE = 2**20, 2**18
"""N² k up to which triangles have kernels for k right-hand sides from n / 8 on, and from n on.

BLAS has threads for those beyond, and kernels copy them to columns.
"""

_MOST_WORK_OF_LU_SOLVE = 3e5
"""N² k up to which packed factors have kernels for k right-hand sides beyond n / 4; BLAS is faster then."""

_MOST_COLUMNS_OF_PACKS, _MOST_ROWS_OF_VECTORS = 8, 24
"""Right-hand sides of packed factors for packs, and rows, where there is one."""


Spec = Callable[[Problem], KernelSpec | None]


def _factors(p: Problem) -> list[TensorSpec]:
    """LU by columns, and pivots."""
    return [rows(p.n, p.m, p.dtype), vector(min(p.m, p.n), torch.int32)]


def _inv(p: Problem) -> KernelSpec:
    flops = (8 / 3 * p.n**3, 4.0 * p.n**3)
    return KernelSpec(*p.kernels("inv"), [columns(p.n, p.n, p.dtype)], [], [1], flops)


def _reporting(build: Spec, name: str, p: Problem) -> KernelSpec:
    """Another operation's, with LAPACK's info as an output more, where a factorization fails, too."""
    spec = cast(KernelSpec, build(p))
    first_kept = 1 + (p.k > 0) + len(spec.outputs)
    return dataclasses.replace(
        spec,
        forward=p.kernel(name),
        outputs=[*spec.outputs, number(torch.int32)],
        reads=[i + (i >= first_kept) for i in spec.reads],
    )


def _solve(p: Problem) -> KernelSpec:
    flops = (2 / 3 * p.n**3 + 2 * p.n**2 * p.k, 4.0 * p.n**2 * p.k)
    return KernelSpec(*p.kernels("solve"), [p.like_rhs(p.n)], _factors(p), [2, 3, 4], flops)


def _det(p: Problem) -> KernelSpec:
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    if p.n <= _MINORS and not p.always_across:
        return KernelSpec("det", "det_backward", [number(p.dtype)], [], [0], flops)
    kept = [*_factors(p), number(p.dtype), number(torch.int64)]
    return KernelSpec(*p.kernels("det"), [number(p.dtype)], kept, [2, 3, 4, 5], flops)


def _slogdet(p: Problem) -> KernelSpec:
    outputs = [number(p.dtype), number(p.dtype.to_real())]
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    names = p.kernels("slogdet")
    if p.dtype.is_complex:
        return KernelSpec(*names, outputs, _factors(p), [1, 3, 4], flops, [0, 1])
    return KernelSpec(*names, outputs, _factors(p), [3, 4], flops, [1], ignored=[0])


def _elimination_flops(p: Problem) -> tuple[float, float]:
    small, large = sorted((p.m, p.n))
    once = small**2 * large - small**3 / 3
    return once, 2 * once


def _lu_factor(p: Problem) -> KernelSpec:
    outputs = [columns(p.m, p.n, p.dtype), vector(min(p.m, p.n), torch.int32)]
    order = [vector(p.m, torch.int64)]
    return KernelSpec(*p.kernels("lu_factor"), outputs, order, [1, 3], _elimination_flops(p))


def _lu(p: Problem) -> KernelSpec:
    m, n, k = p.m, p.n, min(p.m, p.n)
    outputs = [rows(m, m, p.dtype), rows(m, k, p.dtype), rows(k, n, p.dtype)]
    kept = [rows(n, m, p.dtype), vector(m, torch.int64)]
    flops = _elimination_flops(p)
    return KernelSpec("lu", "lu_backward", outputs, kept, [4, 5], flops, cotangents=[1, 2])


def _pinv(p: Problem) -> KernelSpec:
    if p.m == p.n:
        return dataclasses.replace(_inv(p), forward=p.kernel("pinv_square"))
    small, large = sorted((p.m, p.n))
    kept = [rows(small, large, p.dtype), rows(small, small, p.dtype)]
    flops = (5.0 * large * small**2, 6.0 * (large + small) * small**2)
    # (Aᵀ)⁺ is the transpose of A⁺, of complex A, too.
    is_wide = p.m < p.n
    result = (columns if is_wide else rows)(p.n, p.m, p.dtype)
    return KernelSpec(
        *p.kernels("pinv"), [result], kept, [2, 3], flops, is_transposed=is_wide, by_columns=True
    )


def _lstsq(p: Problem) -> KernelSpec:
    residuals = vector(p.k if p.m > p.n else 0, p.dtype.to_real())
    nothing = vector(0, p.dtype.to_real())
    outputs = [p.like_rhs(p.n), residuals, number(torch.int64), nothing]
    if p.m == p.n:
        names = p.kernel("lstsq_square"), _solve(p).backward
        return KernelSpec(*names, outputs, _factors(p), [2, 6, 7], _solve(p).flops)
    if p.m < p.n:
        kept = [rows(p.m, p.n, p.dtype), vector(p.m, p.dtype)]  # reflectors of Aᴴ, and their scales
        flops = (2.0 * p.n * p.m**2 + 4 * p.m * p.n * p.k, (12.0 * p.n + 4 * p.m) * p.m * p.k)
        names = "lstsq_wide", "lstsq_wide_backward"
        return KernelSpec(*names, outputs, kept, [1, 2, 6, 7], flops)
    R = rows(p.n, p.n, p.dtype)
    flops = (2.0 * p.m * p.n**2 + 4 * p.m * p.n * p.k, (12.0 * p.m + 4 * p.n) * p.n * p.k)
    return KernelSpec(*p.kernels("lstsq"), outputs, [R], [0, 1, 2, 6], flops, [0, 1], optional=[1])


def _cholesky(p: Problem) -> KernelSpec:
    flops = (1 / 3 * p.n**3, 2 / 3 * p.n**3)
    return KernelSpec(*p.kernels("cholesky"), [columns(p.n, p.n, p.dtype)], [], [1], flops)


def _cholesky_solve(p: Problem) -> KernelSpec | None:
    if p.is_vector:  # as PyTorch has none, whose right-hand sides are broadcast
        return None
    flops = (2.0 * p.n**2 * p.k, 6.0 * p.n**2 * p.k)
    kept = [rows(p.n, p.k, p.dtype)]
    names = "cholesky_solve", "cholesky_solve_backward"
    return KernelSpec(*names, [columns(p.n, p.k, p.dtype)], kept, [0, 2, 3], flops)


def _cholesky_inverse(p: Problem) -> KernelSpec:
    flops = (2 / 3 * p.n**3, 3.0 * p.n**3)
    names = "cholesky_inverse", "cholesky_inverse_backward"
    return KernelSpec(*names, [columns(p.n, p.n, p.dtype)], [], [0, 1], flops)


def is_for_blas(n: int, k: int) -> bool:
    """Whether a triangular system of n rows and k right-hand sides is left to BLAS.

    Example:
        >>> is_for_blas(256, 64), is_for_blas(256, 2)
        (True, False)
    """
    return n < 8 * k and n**2 * k > (_MOST_WORK_OF_MANY if k < n else _MOST_WORK_OF_MORE)


def _triangular(name: str, p: Problem) -> KernelSpec | None:
    work = p.n**2 * p.k
    if p.is_vector or is_for_blas(p.n, p.k):
        return None
    flops = (1.0 * work, 2.0 * work)
    names = p.kernel(name) if p.k <= _MOST_COLUMNS_OF_PACKS else name, f"{name}_backward"
    return KernelSpec(*names, [p.like_rhs(p.n)], [], [0, 2], flops)


def _lu_solve(name: str, p: Problem) -> KernelSpec | None:
    work = p.n**2 * p.k
    if p.is_vector or (4 * p.k > p.n and work > _MOST_WORK_OF_LU_SOLVE):
        return None
    half = [rows(p.n, p.k, p.dtype)]
    flops = (2.0 * work, 4.0 * work)
    is_for_packs = p.k <= _MOST_COLUMNS_OF_PACKS and (p.k > 1 or p.n <= _MOST_ROWS_OF_VECTORS)
    names = p.kernel(name) if is_for_packs else name, f"{name}_backward"
    return KernelSpec(*names, [p.like_rhs(p.n)], half, [0, 2, 3, 4], flops, by_columns=True)


def _qr(p: Problem) -> KernelSpec | None:
    if p.m < p.n:
        return _wide_qr(p)
    outputs = [columns(p.m, p.n, p.dtype), columns(p.n, p.n, p.dtype)]
    work = p.m * p.n**2
    flops = (4.0 * work - 4 / 3 * p.n**3, 5.0 * work + 2 * p.n**3)
    if p.m * p.n > _MOST_ENTRIES_OF_QR and p.m < _TALL * p.n:
        return None
    if p.m == p.n and p.dtype.is_complex:  # LAPACK may leave the last diagonal entry complex
        if work > _MOST_WORK_OF_COMPLEX_QR:
            return None
        p = p._replace(always_across=True)
    names = p.kernels("qr")
    # Those for single matrices see the transpose, and have their results by columns.
    is_transposed = not all(name.endswith("_across") for name in names)
    names = ("qr", "qr_backward") if is_transposed else names
    return KernelSpec(*names, outputs, [], [1, 2], flops, [0, 1], is_transposed=is_transposed)


def _wide_qr(p: Problem) -> KernelSpec | None:
    # Of a complex matrix LAPACK may leave the last diagonal entry complex.
    if p.dtype.is_complex or p.m * p.n > _MOST_ENTRIES_OF_WIDE_QR:
        return None
    outputs = [columns(p.m, p.m, p.dtype), columns(p.m, p.n, p.dtype)]
    work = p.m**2 * p.n
    flops = (2.0 * work + 2 / 3 * p.m**3, 4.0 * work + 5 * p.m**3)
    return KernelSpec("qr", "qr_backward", outputs, [], [1, 2], flops, [0, 1], is_transposed=True)


def _bases(m: int, n: int, dtype: torch.dtype) -> list[TensorSpec]:
    """U and Vᴴ of A = U C Vᴴ by columns."""
    k = min(m, n)
    return [rows(k, m, dtype), rows(n, k, dtype)]


def _core(by: str, p: Problem) -> TensorSpec | None:
    """C: the singular values of an SVD, or a triangle."""
    k = min(p.m, p.n)
    if by == "svd":
        return vector(k, p.dtype.to_real())
    return rows(k, k, p.dtype) if k <= _MOST_COLUMNS_OF_COD else None


def _any_rank_flops(by: str, p: Problem) -> float:
    """Golub and Van Loan, "Matrix Computations", 4th ed., sections 5.4 and 8.6: R-SVD with both bases."""
    small, large = sorted((p.m, p.n))
    if by == "svd":
        return 6.0 * large * small**2 + 20.0 * small**3
    return 6.0 * large * small**2 + 4.0 * small**3


def _pinv_of_any_rank(by: str, p: Problem) -> KernelSpec | None:
    if (core := _core(by, p)) is None:
        return None
    small, large = sorted((p.m, p.n))
    is_wide = p.m < p.n
    result = (columns if is_wide else rows)(p.n, p.m, p.dtype)
    kept = [*_bases(large, small, p.dtype), core, number(torch.int64)]
    flops = (_any_rank_flops(by, p) + 2 * large * small**2, 10.0 * large * small**2)
    names = f"pinv_{by}", f"pinv_{by}_backward"
    outputs, reads = [result], [2, 3, 4, 5]
    return KernelSpec(*names, outputs, kept, reads, flops, is_transposed=is_wide, any_rank=True)


def _lstsq_of_any_rank(by: str, p: Problem) -> KernelSpec | None:
    if (core := _core(by, p)) is None:
        return None
    is_tall, real = p.m > p.n, p.dtype.to_real()
    residuals = vector(p.k if is_tall else 0, real)
    values, kept = (core, []) if by == "svd" else (vector(0, real), [core])
    outputs = [p.like_rhs(p.n), residuals, number(torch.int64), values]
    entries = p.m * p.n * p.k
    return KernelSpec(
        f"lstsq_{by}" if is_tall else f"lstsq_{by}_without_residuals",
        f"lstsq_{by}_backward",
        outputs,
        [*kept, *_bases(p.m, p.n, p.dtype)],
        [1, 2, 4, *([5, 6, 7] if by == "svd" else [6, 7, 8])],
        (_any_rank_flops(by, p) + 4.0 * entries, 12.0 * entries),
        [0, 1],
        optional=[1],
        rank=(2, 1) if is_tall else None,
        any_rank=True,
    )


Specs = dict[str, Spec]

_BY_FACTORS: Specs = {
    "inv": _inv,
    "solve": _solve,
    "det": _det,
    "slogdet": _slogdet,
    "lu_factor": _lu_factor,
    "lu": _lu,
    "pinv": _pinv,
    "lstsq": _lstsq,
    "cholesky": _cholesky,
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "qr": _qr,
    **{
        name: functools.partial(_reporting, build, name)
        for name, build in (
            ("cholesky_ex", _cholesky),
            ("inv_ex", _inv),
            ("lu_factor_ex", _lu_factor),
            ("solve_ex", _solve),
        )
    },
    **{name: functools.partial(_triangular, name) for name in TRIANGULAR},
    **{name: functools.partial(_lu_solve, name) for name in BY_LU},
}


def _across(build: Spec, p: Problem) -> KernelSpec | None:
    """The same by packs alone; None where there are none for both directions."""
    built = build(p._replace(always_across=True))
    both = built and (built.forward, built.backward)
    return built if both and all(name.endswith("_across") for name in both) else None


SPECS: dict[str, Specs] = {
    "factors": _BY_FACTORS,
    "packs": {name: functools.partial(_across, build) for name, build in _BY_FACTORS.items()},
    **{
        by: {
            "pinv": functools.partial(_pinv_of_any_rank, by),
            "lstsq": functools.partial(_lstsq_of_any_rank, by),
        }
        for by in ("cod", "svd")
    },
}
"""By what a strategy holds, and by operation."""
