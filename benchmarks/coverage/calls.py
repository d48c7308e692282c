"""The calls whose time is compared: every public function, its options, and unusual inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Functions = Callable[..., Any]
"""Calls a function by its name: of PyTorch, or of `strategies.linalg`."""


@dataclass(frozen=True)
class Size:
    """Rows of the matrices, and their batch dimensions."""

    n: int
    batch: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Size":
        """What `str` has made a text of; ValueError if that is of no square matrices."""
        parts = text.split("x")
        if len(parts) < 2 or not all(map(str.isdecimal, parts)) or parts[-1] != parts[-2]:
            raise ValueError(f"no size of square matrices: {text}; write 32x32 or 100x8x8")
        *batch, n, _ = map(int, parts)
        return cls(n, tuple(batch))

    def __str__(self) -> str:
        """As in a case: "100x4x4"."""
        return "x".join(map(str, (*self.batch, self.n, self.n)))


SIZES = Size(4), Size(32), Size(64), Size(128), Size(320), Size(8, (100,))
"""Those that are timed if nothing else is asked for."""


@dataclass(frozen=True)
class Call:
    """A call of a public function.

    Args:
        compute: takes `Functions` and the inputs; returns the outputs that carry gradients.
        inputs: of a size, in float64 or complex128.
        takes_batches: whether the function does.
    """

    compute: Callable[..., Any]
    inputs: Callable[[Size], tuple[Tensor, ...]]
    takes_batches: bool = True

    def outputs(self, functions: Functions, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs that carry gradients."""
        found = self.compute(functions, *inputs)
        return (found,) if isinstance(found, Tensor) else tuple(found)


def _randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def _matrix(size: Size, rows: int = 1, columns: int = 1) -> Tensor:
    return _randn(*size.batch, size.n * rows, size.n * columns)


def _of(
    rows: int = 1, columns: int = 1, change: Callable[[Tensor], Tensor] = lambda A: A
) -> Callable[[Size], tuple[Tensor]]:
    return lambda size: (change(_matrix(size, rows, columns)),)


def _make_definite(A: Tensor) -> Tensor:
    n = A.shape[-1]
    return A @ A.mH / n + torch.eye(n, dtype=A.dtype)


def _make_factor(A: Tensor) -> Tensor:
    return torch.linalg.cholesky(_make_definite(A))


def _make_complex(A: Tensor) -> Tensor:
    return torch.complex(A, _randn(*A.shape))


def _put_nan(A: Tensor) -> Tensor:
    A[..., 0, 0].view(-1)[0] = torch.nan
    return A


def _put_zeros(A: Tensor) -> Tensor:
    A[..., A.shape[-2] // 2, :] = 0
    return A


_one, _tall, _wide = _of(), _of(rows=4), _of(columns=4)
_hermitian = _of(change=lambda A: A + A.mT)
_scaled = _of(change=lambda A: A * 1e-60)
_with_nan = _of(change=_put_nan)
_row_of_zeros = _of(change=_put_zeros)
_zeros = _of(rows=4, change=torch.zeros_like)
_definite = _of(change=_make_definite)
_lu = _of(change=lambda A: torch.linalg.lu_factor(A).LU)
_factor = _of(change=_make_factor)
_triangular = _of(change=lambda A: _make_factor(A).mT.contiguous())
_complex, _complex_tall = _of(change=_make_complex), _of(rows=4, change=_make_complex)
_complex_definite = _of(change=lambda A: _make_definite(_make_complex(A)))
_complex_factor = _of(change=lambda A: _make_factor(_make_complex(A)))


def _of_rank(rank: Callable[[int], int], rows: int = 1) -> Callable[[Size], tuple[Tensor]]:
    def inputs(size: Size) -> tuple[Tensor]:
        r = rank(size.n)
        return (_randn(*size.batch, size.n * rows, r) @ _randn(*size.batch, r, size.n) / size.n,)

    return inputs


_of_half_rank, _tall_of_half_rank = (_of_rank(lambda n: n // 2, rows) for rows in (1, 4))


def _with(
    matrix: Callable[[Size], tuple[Tensor]], columns: int | None, *, left: bool = True
) -> Callable[[Size], tuple[Tensor, ...]]:
    """A matrix and right-hand sides; a vector where there are no columns."""

    def inputs(size: Size) -> tuple[Tensor, ...]:
        (A,) = matrix(size)
        rest = () if columns is None else (columns,)
        shape = (A.shape[-2], *rest) if left else (*rest, A.shape[-1])
        return A, torch.randn(*size.batch, *shape, dtype=A.dtype)

    return inputs


def _far(inputs: Callable[[Size], tuple[Tensor, ...]]) -> Callable[[Size], tuple[Tensor, ...]]:
    """The same in single precision, the last of them 10⁸ times as large."""

    def far(size: Size) -> tuple[Tensor, ...]:
        *others, last = (each.float() for each in inputs(size))
        return *others, last * 1e8

    return far


def _broadcast(matrices: int, sides: int) -> Callable[[Size], tuple[Tensor, ...]]:
    return lambda size: (
        _randn(*size.batch, matrices, size.n, size.n),
        _randn(*size.batch, sides, size.n, 2),
    )


def _cholesky_solve(**options: Any) -> Callable[..., Any]:
    return lambda call, L, B: call("cholesky_solve", B, L, **options)


def _lu_solve(**options: bool) -> Callable[..., Any]:
    def compute(call: Functions, LU: Tensor, B: Tensor) -> Any:
        n = LU.shape[-1]
        pivots = torch.arange(1, n + 1, dtype=torch.int32).expand(*LU.shape[:-1]).contiguous()
        return call("lu_solve", LU, pivots, B, **options)

    return compute


def _simply(name: str, part: int | slice | None = None, **options: object) -> Callable[..., Any]:
    """By the default options but these, and of what is returned this part."""

    def compute(call: Functions, *inputs: Tensor) -> Any:
        found = call(name, *inputs, **options)
        return found if part is None else found[part]

    return compute


CALLS: Mapping[str, Call] = {
    "inv": Call(_simply("inv"), _one),
    "inv complex": Call(_simply("inv"), _complex),
    "inv scaled": Call(_simply("inv"), _scaled),
    "inv of large float32": Call(_simply("inv"), _far(_one)),
    "inv with NaN": Call(_simply("inv"), _with_nan),
    "inv of transpose": Call(lambda call, A: call("inv", A.mT), _one),
    "inv of adjoint": Call(lambda call, A: call("inv", A.mH), _complex),
    "inv_ex": Call(_simply("inv_ex", 0), _one),
    "inverse": Call(_simply("inverse"), _one),
    "inv_ex, a row of zeros": Call(_simply("inv_ex", 0), _row_of_zeros),
    "matrix_power -2": Call(lambda call, A: call("matrix_power", A, -2), _one),
    "tensorinv": Call(
        lambda call, A: call("tensorinv", A.unsqueeze(1), ind=2), _one, takes_batches=False
    ),
    "solve vector": Call(_simply("solve"), _with(_one, None)),
    "solve k=2": Call(_simply("solve"), _with(_one, 2)),
    "solve k=32": Call(_simply("solve"), _with(_one, 32)),
    "solve complex": Call(_simply("solve"), _with(_complex, 2)),
    "solve scaled": Call(_simply("solve"), _with(_scaled, 2)),
    "solve, large float32 B": Call(_simply("solve"), _far(_with(_one, 2))),
    "solve from the right": Call(_simply("solve", left=False), _with(_one, 2, left=False)),
    "solve of transpose": Call(lambda call, A, B: call("solve", A.mT, B), _with(_one, 2)),
    "solve of adjoint": Call(lambda call, A, B: call("solve", A.mH, B), _with(_complex, 2)),
    "solve, 8 for one matrix": Call(_simply("solve"), _broadcast(1, 8)),
    "solve, one for 8 matrices": Call(_simply("solve"), _broadcast(8, 1)),
    "solve_ex": Call(_simply("solve_ex", 0), _with(_one, 2)),
    "solve_ex, a row of zeros": Call(_simply("solve_ex", 0), _with(_row_of_zeros, 2)),
    "tensorsolve": Call(_simply("tensorsolve"), _with(_one, None), takes_batches=False),
    "det": Call(_simply("det"), _one),
    "det complex": Call(_simply("det"), _complex),
    "det of rank n-1": Call(_simply("det"), _of_rank(lambda n: n - 1)),
    "det of rank 1": Call(_simply("det"), _of_rank(lambda _: 1)),
    "det, a row of zeros": Call(_simply("det"), _row_of_zeros),
    "slogdet, log only": Call(_simply("slogdet", 1), _one),
    "slogdet": Call(_simply("slogdet"), _one),
    "slogdet complex": Call(_simply("slogdet"), _complex),
    "logdet": Call(_simply("logdet"), _definite),
    "lu_factor": Call(_simply("lu_factor", 0), _one),
    "lu_factor complex": Call(_simply("lu_factor", 0), _complex),
    "lu_factor tall": Call(_simply("lu_factor", 0), _tall),
    "lu_factor wide": Call(_simply("lu_factor", 0), _wide),
    "lu_factor_ex": Call(_simply("lu_factor_ex", 0), _one),
    "lu_factor_ex, U of rank n/2": Call(
        lambda call, A: call("lu_factor_ex", A)[0].triu(), _of_half_rank
    ),
    "lu": Call(_simply("lu", slice(1, None)), _one),
    "lu tall": Call(_simply("lu", slice(1, None)), _tall),
    "lu, a row of zeros": Call(_simply("lu", slice(1, None)), _row_of_zeros),
    "lu_solve": Call(_lu_solve(), _with(_lu, 2)),
    "lu_solve k=32": Call(_lu_solve(), _with(_lu, 32)),
    "lu_solve adjoint": Call(_lu_solve(adjoint=True), _with(_lu, 2)),
    "lu_solve from the right": Call(_lu_solve(left=False), _with(_lu, 2, left=False)),
    "pinv": Call(_simply("pinv"), _one),
    "pinv complex": Call(_simply("pinv"), _complex_tall),
    "pinv tall": Call(_simply("pinv"), _tall),
    "pinv wide": Call(_simply("pinv"), _wide),
    "pinv hermitian": Call(_simply("pinv", hermitian=True), _hermitian),
    "pinv rtol": Call(_simply("pinv", rtol=1e-12), _tall),
    "pinv tensor rtol": Call(
        lambda call, A: call("pinv", A, rtol=torch.tensor(1e-12, dtype=A.dtype)), _tall
    ),
    "pinv atol": Call(_simply("pinv", atol=1e-12), _tall),
    "pinv of rank n/2": Call(_simply("pinv"), _of_half_rank),
    "pinv tall of rank n/2": Call(_simply("pinv"), _tall_of_half_rank),
    "pinv tall of zeros": Call(_simply("pinv"), _zeros),
    "pinverse": Call(_simply("pinverse"), _tall),
    "lstsq": Call(_simply("lstsq", 0), _with(_one, 2)),
    "lstsq complex": Call(_simply("lstsq", 0), _with(_complex_tall, 2)),
    "lstsq tall": Call(_simply("lstsq", 0), _with(_tall, 2)),
    "lstsq tall, k=32": Call(_simply("lstsq", 0), _with(_tall, 32)),
    "lstsq tall vector": Call(
        lambda call, A, b: call("lstsq", A, b[..., None])[0], _with(_tall, None)
    ),
    "lstsq wide": Call(_simply("lstsq", 0), _with(_wide, 2)),
    "lstsq rcond": Call(_simply("lstsq", 0, rcond=1e-12), _with(_tall, 2)),
    "lstsq tall, large float32 B": Call(_simply("lstsq", 0), _far(_with(_tall, 2))),
    "lstsq, solution and residuals": Call(_simply("lstsq", slice(2)), _with(_tall, 2)),
    "lstsq gelsd": Call(_simply("lstsq", 0, driver="gelsd"), _with(_tall, 2)),
    "lstsq tall of rank n/2": Call(_simply("lstsq", 0), _with(_tall_of_half_rank, 2)),
    "lstsq tall of zeros": Call(_simply("lstsq", 0), _with(_zeros, 2)),
    "cholesky": Call(_simply("cholesky"), _definite),
    "cholesky complex": Call(_simply("cholesky"), _complex_definite),
    "cholesky upper": Call(_simply("cholesky", upper=True), _definite),
    "cholesky of large float32": Call(_simply("cholesky"), _far(_definite)),
    "cholesky_ex": Call(_simply("cholesky_ex", 0), _definite),
    "cholesky_ex, indefinite": Call(_simply("cholesky_ex", 0), _hermitian),
    "cholesky_solve": Call(_cholesky_solve(), _with(_factor, 2)),
    "cholesky_solve, large float32 B": Call(_cholesky_solve(), _far(_with(_factor, 2))),
    "cholesky_solve k=32": Call(_cholesky_solve(), _with(_factor, 32)),
    "cholesky_solve upper": Call(_cholesky_solve(upper=True), _with(_triangular, 2)),
    "cholesky_inverse": Call(_simply("cholesky_inverse"), _factor),
    "cholesky_inverse complex": Call(_simply("cholesky_inverse"), _complex_factor),
    "cholesky_inverse upper": Call(_simply("cholesky_inverse", upper=True), _triangular),
    "solve_triangular k=1": Call(_simply("solve_triangular", upper=False), _with(_factor, 1)),
    "solve_triangular k=2": Call(_simply("solve_triangular", upper=False), _with(_factor, 2)),
    "solve_triangular k=32": Call(_simply("solve_triangular", upper=False), _with(_factor, 32)),
    "solve_triangular upper": Call(_simply("solve_triangular", upper=True), _with(_triangular, 2)),
    "solve_triangular from the right": Call(
        _simply("solve_triangular", upper=False, left=False), _with(_factor, 2, left=False)
    ),
    "solve_triangular unit": Call(
        _simply("solve_triangular", upper=False, unitriangular=True), _with(_factor, 2)
    ),
    "qr": Call(_simply("qr"), _one),
    "qr complex": Call(_simply("qr"), _complex_tall),
    "qr tall": Call(_simply("qr"), _tall),
    "qr wide": Call(_simply("qr", 1), _wide),
    "qr, R alone": Call(_simply("qr", 1, mode="r"), _tall),
    "eig": Call(lambda call, A: call("eig", A)[0].abs(), _one),
}
"""By a text. What is not said is square, real, of full rank, from the left, and by the default options."""
