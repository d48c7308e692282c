"""Small matrices: their whole forward in one compiled call, and their whole backward in another."""

from typing import ClassVar

from torch import Tensor

from strategies.builtin.blocked_lu import BlockedLU
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import LinAlgError
from strategies.factors import PackedLU, Reflected
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.cpu import tall
from strategies.strategy import Saved, Tolerance


class Fused(TriangularSolve):
    """LAPACK's factors, what is solved with them and all checks, without leaving compiled code.

    Of a small matrix the arithmetic takes a few microseconds, and calling, checking and keeping its
    factors a hundred. On the CPU matrices of up to 2048×2048 entries, one or a batch, are therefore done
    by one compiled kernel forward and one backward (`strategies.kernels.cpu`): LU, QR of tall and wide
    matrices, Cholesky factors, and substitution, or in `inv` products with the inverse. Kernels call the
    LAPACK of torch, compute few rows themselves, and matrices of a batch side by side where that is
    faster. Where `pinv` or `lstsq` find the rank deficient, it is the decomposition of `qr_pinv`, or where
    that is not certain of the rank a truncated SVD, if rows and columns are of like length. On CUDA real
    matrices of up to 8×8 are done by one kernel each way (`strategies.kernels.cuda`).

    What a kernel declines and all rarer modes are done as in `triangular_solve`; what that refuses, for
    its rank or for growth in the elimination, as in `qr_pinv`; and on the CPU gradients of LU and Cholesky
    factors as in `blocked_lu`.

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
    fused: ClassVar[tuple[str, ...]] = ("factors", "cod", "svd")

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

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        try:
            return super().lstsq_forward(matrix, rhs, rtol=rtol)
        except LinAlgError:
            return NotImplemented

    def lu_backward(self, factors: PackedLU, cotangent: Tensor) -> Tensor:
        return NotImplemented if cotangent.is_cuda else _BLOCKED.lu_backward(factors, cotangent)

    def cholesky_backward(self, L: Tensor, cotangent: Tensor) -> Tensor:
        return NotImplemented if cotangent.is_cuda else _BLOCKED.cholesky_backward(L, cotangent)

    def lstsq_backward(
        self, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        A, inverse = saved.matrix, saved.inverse
        if not (need_matrix and isinstance(inverse, Reflected) and tall.supports(A, saved.rhs)):
            return NotImplemented
        w = inverse.corrected_gram(cotangent, lambda w: tall.gram_product(A, w))
        return tall.lstsq_gradients(w, A, saved.rhs, saved.result)


_BY_QR, _BLOCKED = QRPinv(), BlockedLU()
