"""Small matrices: their whole forward in one compiled call, and their whole backward in another."""

from typing import ClassVar

from torch import Tensor

from strategies.builtin.blocked_lu import BlockedLU
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import LinAlgError
from strategies.factors import LUFactors, Orthogonal, PackedLU, Reflected, Triangular
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.kernels.cpu import calls, tall
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

    What a kernel declines and all rarer modes are done as in `triangular_solve`, but for gradients of
    batches; what that refuses, for its rank or for growth in the elimination, as in `qr_pinv`, and on the
    CPU factorizations of larger matrices as in `blocked_lu`.

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
        LU, order = factors
        found = calls.lu_backward(LU.mT, order, cotangent)
        if found is not NotImplemented or cotangent.is_cuda:
            return found
        return _BLOCKED.lu_backward(factors, cotangent)

    def cholesky_backward(self, L: Tensor, cotangent: Tensor) -> Tensor:
        found = calls.cholesky_backward(L.mT, cotangent)
        if found is not NotImplemented or cotangent.is_cuda:
            return found
        return _BLOCKED.cholesky_backward(L, cotangent)

    def inv_backward(self, saved: Saved, cotangent: Tensor) -> Tensor:
        return calls.inv_backward(saved.result.mT, cotangent)

    def solve_backward(
        self, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        match saved.inverse:
            case LUFactors(LU, pivots) if need_matrix:
                return calls.solve_backward(saved.result, LU.mT, pivots, cotangent)
        return NotImplemented

    def pinv_backward(self, saved: Saved, cotangent: Tensor) -> Tensor:
        m, n = saved.matrix.shape[-2:]
        if m < n:
            tall_one = Saved(saved.inverse.adjoint, (saved.matrix.mH,), (saved.result.mH,))
            gradient = self.pinv_backward(tall_one, cotangent.mH)
            return gradient if gradient is NotImplemented else gradient.mH
        match saved.inverse:
            case LUFactors():
                return self.inv_backward(saved, cotangent)
            case Orthogonal(Q, Triangular(R)):
                found = calls.pinv_backward(Q.mT, R.mT, cotangent)
                return found if found is NotImplemented else found.mT
        return NotImplemented

    def lstsq_backward(
        self, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        A, B, X = saved.matrix, saved.rhs, saved.result
        match saved.inverse:
            case LUFactors():
                return self.solve_backward(saved, cotangent, need_matrix=need_matrix)
            case Reflected() as inverse if need_matrix and tall.supports(A, B):
                w = inverse.corrected_gram(cotangent, lambda w: tall.gram_product(A, w))
                return tall.lstsq_gradients(w, A, B, X)
            case Reflected(packed_R=R) if need_matrix:
                of_residuals = A.new_empty(*A.shape[:-2], 0, dtype=A.dtype.to_real())
                return calls.lstsq_backward(A, B, X, R.mT, cotangent, of_residuals)
        return NotImplemented


_BY_QR, _BLOCKED = QRPinv(), BlockedLU()
