"""What a call costs whatever the machine: floating-point operations and torch calls.

`torch.utils.flop_counter` knows no factorization, hence the formulas below: leading terms of LAPACK Working
Note 41 (Blackford & Dongarra 1999), and of Golub & Van Loan, Matrix Computations (2013), section 8.6, for
singular values and eigenvectors. Elementwise arithmetic counts one per element of the largest operand, two
where it multiplies and adds. A complex operation counts as four real ones.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from strategies.kernels.cpu.task import watchers


class Work(NamedTuple):
    """Real floating-point operations, and torch operations dispatched, views included."""

    flops: int
    calls: int


def work_of(call: Callable[[], object]) -> Work:
    """Runs `call` once and counts its work; the same inputs give the same counts.

    Example:
        >>> import torch
        >>> a = torch.ones(3, 4)
        >>> work_of(lambda: a @ a.mT)
        Work(flops=72, calls=2)
    """
    counter = _Counter()
    watchers.append(counter.add_flops)
    try:
        with counter:
            call()
    finally:
        watchers.remove(counter.add_flops)
    return Work(flops=round(counter.flops), calls=counter.calls)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0.0
        self.calls = 0

    def add_flops(self, flops: float) -> None:
        self.flops += flops

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        formula = _FORMULAS.get(func.overloadpacket.__name__.rstrip("_"))
        if formula is not None:
            operands = [a for a in args if isinstance(a, Tensor)]
            self.add_flops((4 if operands[0].is_complex() else 1) * formula(*operands))
        return func(*args, **(kwargs or {}))


def _product(a: Tensor, b: Tensor) -> float:
    return 2 * a.numel() * b.shape[-1]


def _of_sides(count: Callable[[int, int], float]) -> Callable[..., float]:
    """By the short and the long side of every matrix."""
    return lambda a, *_: math.prod(a.shape[:-2]) * count(*sorted(a.shape[-2:]))


def _cubes(factor: float) -> Callable[..., float]:
    return _of_sides(lambda n, _: factor * n**3)


def _elementwise(factor: int) -> Callable[..., float]:
    return lambda *operands: factor * max(a.numel() for a in operands)


_lu = _of_sides(lambda small, large: small**2 * large - small**3 / 3)
_householder_qr = _of_sides(lambda small, large: 2 * small**2 * large - 2 * small**3 / 3)


def svd_flops(small: int, large: int) -> float:
    """Of the singular values and vectors of one matrix with these sides."""
    return 6 * large * small**2 + 20 * small**3


def _form_q(reflectors: Tensor, tau: Tensor) -> float:
    m, n = reflectors.shape[-2:]
    k = tau.shape[-1]
    of_one = 4 * m * n * k - 2 * (m + n) * k**2 + 4 * k**3 / 3
    return math.prod(reflectors.shape[:-2]) * of_one


def _apply_q(reflectors: Tensor, tau: Tensor, b: Tensor) -> float:
    m, k = reflectors.shape[-2], tau.shape[-1]
    return b.numel() / m * (4 * m * k - 2 * k**2)


_FORMULAS: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "reciprocal", "sum"), _elementwise(1)),
    **dict.fromkeys(("addcmul", "addcdiv"), _elementwise(2)),
    **dict.fromkeys(("mm", "bmm"), _product),
    **dict.fromkeys(("addmm", "baddbmm"), lambda _, a, b: _product(a, b)),
    **dict.fromkeys(("mv", "dot", "vdot"), lambda a, _: 2 * a.numel()),
    "addmv": lambda _y, a, _x: 2 * a.numel(),
    # The triangle is on either side of b.
    "linalg_solve_triangular": lambda a, b: b.numel() * a.shape[-1],
    "triangular_solve": lambda b, a: b.numel() * a.shape[-1],
    **dict.fromkeys(("linalg_lu_factor_ex", "linalg_lu", "_linalg_det", "_linalg_slogdet"), _lu),
    "linalg_lu_solve": lambda lu, _, b: 2 * b.numel() * lu.shape[-1],
    "_linalg_solve_ex": lambda a, b: _lu(a) + 2 * b.numel() * a.shape[-1],
    "linalg_inv_ex": _cubes(2),
    "geqrf": _householder_qr,
    "linalg_qr": lambda a: 2 * _householder_qr(a),
    "linalg_householder_product": _form_q,
    "ormqr": _apply_q,
    "linalg_lstsq": lambda a, b: _householder_qr(a) + 4 * a.numel() * b.shape[-1],
    "linalg_cholesky_ex": _cubes(1 / 3),
    "cholesky_inverse": _cubes(2 / 3),
    "cholesky_solve": lambda b, c: 2 * b.numel() * c.shape[-1],
    "_linalg_eigh": _cubes(9),
    "_linalg_svd": _of_sides(svd_flops),
}
