"""Small matrices: their whole forward in one compiled call, and their whole backward in another."""

from __future__ import annotations

from strategies.builtin.batch_last import BatchLast

__all__ = ["Fused"]


class Fused(BatchLast):
    """LAPACK's factors, what is solved with them and all checks, without leaving compiled code.

    Of a small matrix the arithmetic takes a few microseconds, and calling, checking and keeping its
    factors a hundred. On the CPU matrices of up to 262144 entries, one or a batch, are therefore done by
    one compiled loop forward and one backward (`strategies.kernels.cpu.fused`), which call the LAPACK of
    torch: LU, QR of tall and wide matrices, and substitution, or in `inv` products with the inverse. The
    loops are compiled at their first use for each dtype and kept on disk. Least squares of wide matrices,
    all that is not a usual case and all rarer modes are done as in `batch_last`.

    Example:
        >>> import torch, strategies
        >>> A = torch.tensor([[4.0]], requires_grad=True)
        >>> strategies.linalg.inv(A, strategy="fused").backward()
        >>> A.grad
        tensor([[-0.0625]])
    """

    name = "fused"
    summary = "small matrices in one compiled call, forward and backward, by LAPACK's factors"
    fused = "factors"
