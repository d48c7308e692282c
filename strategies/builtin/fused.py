"""Small matrices: their whole forward in one compiled call, and their whole backward in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from strategies.builtin.batch_last import BatchLast
from strategies.builtin.blocked_lu import BlockedLU
from strategies.builtin.qr_pinv import QRPinv
from strategies.errors import LinAlgError
from strategies.factors import PackedLU
from strategies.interface import Tolerance
from strategies.pseudo_inverse import PseudoInverse

__all__ = ["Fused"]


class Fused(BatchLast):
    """LAPACK's factors, what is solved with them and all checks, without leaving compiled code.

    Of a small matrix the arithmetic takes a few microseconds, and calling, checking and keeping its
    factors a hundred. On the CPU matrices of up to 2048×2048 entries, one or a batch, are therefore done
    by one compiled loop forward and one backward (`strategies.kernels.cpu.fused`), which call the
    LAPACK of torch: LU, QR of tall and wide matrices, Cholesky factors, and substitution, or in `inv`
    products with the inverse. Where `pinv` or `lstsq` find the rank deficient, it is a truncated SVD, if
    rows and columns are of like length. The loops are compiled at their first use for each dtype and
    kept on disk. On CUDA real matrices of up to 8×8 are done by one program each way
    (`strategies.kernels.cuda`).

    All that is not a usual case and all rarer modes are done as in `batch_last`, what that refuses, for
    its rank or for growth in the elimination, as in `qr_pinv`, and on the CPU factorizations of larger
    matrices as in `blocked_lu`.

    Example:
        >>> import torch, strategies
        >>> A = torch.tensor([[4.0]], requires_grad=True)
        >>> strategies.linalg.inv(A, strategy="fused").backward()
        >>> A.grad
        tensor([[-0.0625]])
    """

    name = "fused"
    summary = "small matrices in one compiled call, forward and backward, by LAPACK's factors"
    requires_full_rank = False
    fused = ("factors", "svd")

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        try:
            return super().factor_tall(matrix, rtol=rtol, atol=atol)
        except LinAlgError:
            return _BY_QR.factor_tall(matrix, rtol=rtol, atol=atol)

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        try:
            return super().factor_square(matrix)
        except LinAlgError as refused:
            try:
                return _BY_QR.factor_square(matrix)
            except LinAlgError:
                raise refused from None

    def pinv_forward(
        self, matrix: Tensor, *, rtol: Tolerance = None, atol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        return _unless_refused(super().pinv_forward, matrix, rtol=rtol, atol=atol)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        return _unless_refused(super().lstsq_forward, matrix, rhs, rtol=rtol)

    def inv_forward(self, matrix: Tensor) -> tuple[Tensor, PseudoInverse]:
        return _unless_refused(super().inv_forward, matrix)

    def solve_forward(self, matrix: Tensor, rhs: Tensor) -> tuple[Tensor, PseudoInverse]:
        return _unless_refused(super().solve_forward, matrix, rhs)

    def lu_backward(self, factors: PackedLU, cotangent: Tensor) -> Tensor:
        found = super().lu_backward(factors, cotangent)
        if found is not NotImplemented or cotangent.is_cuda:
            return found
        return _BLOCKED.lu_backward(factors, cotangent)

    def cholesky_backward(self, L: Tensor, cotangent: Tensor) -> Tensor:
        found = super().cholesky_backward(L, cotangent)
        if found is not NotImplemented or cotangent.is_cuda:
            return found
        return _BLOCKED.cholesky_backward(L, cotangent)


def _unless_refused(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return method(*arguments, **options)
    except LinAlgError:
        return NotImplemented


_BY_QR, _BLOCKED = QRPinv(), BlockedLU()
