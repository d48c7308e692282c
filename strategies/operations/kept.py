"""For which calls an operator keeps what its gradient reads: those that its fast path takes.

Of others the gradient would compute the operation again. Under torch.func the function stands for these, as
it does wherever values can be read (`strategies.operations.traceable`).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from strategies.autograd.choice import are_matrices, are_of_kind
from strategies.strategy import Tolerance

__all__ = ["KEPT", "always"]


def always(*_: object, **__: object) -> bool:
    """Whether an operator that has a fast path for all calls keeps what its gradient reads.

    Example:
        >>> always()
        True
    """
    return True


def _never(*_: object, **__: object) -> bool:
    return False


def _are_alike(A: Tensor, B: Tensor) -> bool:
    """Whether B, vectors or columns, is in batches as A is."""
    is_usual = are_matrices(A) and are_of_kind(A, B) and B.ndim in (A.ndim - 1, A.ndim)
    return is_usual and B.shape[: A.ndim - 2] == A.shape[:-2]


def _solve(A: Tensor, B: Tensor, **_: object) -> bool:
    return _are_alike(A, B)


def _solve_ex(A: Tensor, B: Tensor, *, left: bool = True, **_: object) -> bool:
    return left and _are_alike(A, B)


def _lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, **_: object
) -> bool:
    return _are_alike(A, B) and rcond is None and driver is None


def _cholesky_solve(B: Tensor, L: Tensor, *_: object, **__: object) -> bool:
    return _are_alike(L, B)


def _pinv(
    A: Tensor,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    hermitian: bool = False,
    **_: object,
) -> bool:
    return are_matrices(A) and atol is None and rtol is None and not hermitian


def _qr(A: Tensor, mode: str = "reduced", **_: object) -> bool:
    return mode == "reduced" and are_matrices(A) and A.shape[-2] >= A.shape[-1]


KEPT: dict[str, Callable[..., bool]] = {
    "solve": _solve,
    "solve_ex": _solve_ex,
    "lstsq": _lstsq,
    "cholesky_solve": _cholesky_solve,
    "pinv": _pinv,
    "qr": _qr,
    **dict.fromkeys(("eig", "lu_solve", "solve_triangular"), _never),
}
"""By function; others' operators keep it of all calls."""
