"""From what the caller wrote to a factor."""

import contextlib

import torch
from torch import Tensor

from strategies.autograd.choice import StrategyChoice, are_matrices, name_of
from strategies.autograd.half_precision import HALF
from strategies.autograd.nodes import is_differentiated
from strategies.autograd.precision import full_precision
from strategies.errors import LinAlgError
from strategies.factorization import nodes, operators
from strategies.factorization.factor import Factor, is_plain
from strategies.factorization.kinds import KINDS, Form
from strategies.strategy import Strategy

_KIND_OF = {"qr_pinv": "qr", "svd_truncated_pinv": "svd"}
"""The kinds that strategies stand for; others stand for elimination."""


def factor(
    A: Tensor, kind: str = "auto", *, rank: int | None = None, strategy: StrategyChoice = "auto"
) -> Factor:
    """Factors matrices once, for all that is computed of them and one backward.

    Args:
        A: (..., m, n); float32, float64, complex64 or complex128, or float16 or bfloat16, computed in
            float32.
        kind: "lu" of square matrices; "spd" of Hermitian positive definite ones, of which the lower
            triangle is read and whose gradient is Hermitian; "qr" of full rank, rows and columns of any
            numbers; "svd" of any rank. "auto": "lu" of square matrices, or "qr" where elements grow in
            the elimination; "qr" of others; "svd" where a smaller rank is stated.
        rank: states the rank, so that it is not decided: "svd" cuts off what is beyond, "qr" is not
            checked.
        strategy: how the inverse is held. "explicit_inverse" forms it, once, for products; "qr_pinv" and
            "svd_truncated_pinv" stand for the kinds "qr" and "svd"; by all others it is solved with the
            factors, and "auto" is that.

    Returns:
        The factor: see `Factor`.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular or not positive definite, elements grow in its
            elimination so that digits are lost, or its rank is not what the kind needs.
        RuntimeError: A is not a batch of float matrices, or not square where the kind needs that.
        ValueError: no such kind, a rank that A cannot have, or a strategy that stands for another kind.

    Example:
        >>> A = torch.tensor([[4.0, 0.0], [0.0, 9.0]], requires_grad=True)
        >>> f = factor(A, "spd")
        >>> (f.solve(torch.ones(2)).sum() + f.logdet()).backward()
        >>> A.grad.diagonal()
        tensor([0.1875, 0.0988])
    """
    wide = _in_working_precision(A)
    name = strategy.name if isinstance(strategy, Strategy) else name_of(strategy)
    chosen = _kinds(wide, kind, rank, name)
    has_values = is_plain(wide)
    forms = [KINDS[each](rank, name == "explicit_inverse") for each in chosen]
    # Which of several it is, values tell, which can be looked at only there.
    *preferred, last = forms if has_values else forms[:1]
    for form in preferred:
        with contextlib.suppress(LinAlgError):
            return _factored(form, wide, A, has_values)
    return _factored(last, wide, A, has_values)


def _factored(form: Form, A: Tensor, given: Tensor, has_values: bool) -> Factor:
    if has_values:
        with torch.no_grad(), full_precision(A.device, A.dtype):
            held = form.held(A.detach().resolve_conj())
        needs_gradient = is_differentiated(A)
        matrix = nodes.Accumulation.apply(A) if needs_gradient else A.detach()  # type: ignore[no-untyped-call]
        return Factor(form, matrix, held, given.detach(), True)
    return Factor(form, A, operators.factorize(A, form), given, False)


def _in_working_precision(A: Tensor) -> Tensor:
    if isinstance(A, Tensor) and A.dtype in HALF:
        A = A.to(torch.float32)
    if not are_matrices(A):
        what = f"{A.dtype} of shape {tuple(A.shape)}" if isinstance(A, Tensor) else type(A).__name__
        raise RuntimeError(f"factor takes batches of float matrices, not {what}")
    return A


def _kinds(A: Tensor, kind: str, rank: int | None, strategy: str) -> tuple[str, ...]:
    """The kinds to try."""
    m, n = A.shape[-2:]
    most = min(m, n)
    if kind not in (*KINDS, "auto"):
        raise ValueError(f"no kind of factor is named {kind!r}; there is auto, {', '.join(KINDS)}")
    stands_for = _KIND_OF.get(strategy, kind)
    if kind not in ("auto", stands_for):
        raise ValueError(f"strategy '{strategy}' stands for kind '{stands_for}', not '{kind}'")
    if rank is not None and not 0 <= rank <= most:
        raise ValueError(f"a matrix of {m}×{n} has a rank from 0 to {most}, not {rank}")
    is_full = rank is None or rank == most
    if stands_for == "auto":
        if not is_full:
            return ("svd",)
        return ("lu", "qr") if m == n else ("qr",)
    if not is_full and stands_for != "svd":
        raise ValueError(
            f"kind '{stands_for}' is of full rank, {most} here; 'svd' takes rank={rank}"
        )
    if KINDS[stands_for].is_square and m != n:
        raise RuntimeError(
            f"kind '{stands_for}' takes square matrices, not {m}×{n}; 'qr' takes these"
        )
    return (stands_for,)
