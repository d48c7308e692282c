"""For which calls an operator keeps what its gradient reads: those that its fast path takes.

Of others the gradient would compute the operation again. Under torch.func the function stands for these, as
it does wherever values can be read (`strategies.operations.traceable`).
"""

from collections.abc import Callable

from torch import Tensor

from strategies.autograd.choice import are_matrices, are_of_kind
from strategies.kernels.cpu.specs import is_for_blas
from strategies.operations.right_hand_sides import fit


def _are_alike(A: Tensor, B: Tensor) -> bool:
    """Whether B, vectors or columns, is in batches as A is."""
    is_usual = are_matrices(A) and are_of_kind(A, B) and B.ndim in (A.ndim - 1, A.ndim)
    return is_usual and B.shape[: A.ndim - 2] == A.shape[:-2]


KEPT: dict[str, Callable[..., bool]] = {
    "solve": lambda A, B, *, left=True, **_: _are_alike(A, B) or fit(A, B, left),
    "solve_ex": lambda A, B, *, left=True, **_: left and _are_alike(A, B),
    "lstsq": lambda A, B, rcond=None, *, driver=None, **_: (
        _are_alike(A, B) and not isinstance(rcond, Tensor) and driver is None
    ),
    "cholesky_solve": lambda B, L, *_, **__: fit(L, B, left=True),
    "pinv": lambda A, *, atol=None, rtol=None, hermitian=False, **_: (
        are_matrices(A)
        and not any(isinstance(each, Tensor) for each in (atol, rtol))
        and not hermitian
    ),
    "qr": lambda A, mode="reduced", **_: (
        mode == "reduced" and are_matrices(A) and A.shape[-2] >= A.shape[-1]
    ),
    "solve_triangular": lambda A, B, *, left=True, **_: (
        _are_alike(A, B)
        and fit(A, B, left)
        and not is_for_blas(A.shape[-1], B.shape[-1 if left else -2])
    ),
    **dict.fromkeys(("eig", "lu_solve"), lambda *_, **__: False),
}
"""By function; others' operators keep it of all calls."""

MOST_ORDERS = {"qr": 1, "solve_triangular": 1}
"""Up to which order derivatives under torch.func are faster by operators, where not all are."""
