"""Batches of small matrices side by side, one number of each in every vector register."""

from strategies.builtin.fused import Fused


class BatchLast(Fused):
    """The formulas on packs of matrices: each step is one instruction for several matrices of a batch.

    A batched library call goes from matrix to matrix and, where they are small, spends its time on
    calling and on vectors too short. On the CPU the forward and the backward of `inv`, `solve`, `det`,
    `slogdet`, `lu_factor`, `cholesky` and `pinv`, of square and tall `lstsq`, and of tall `qr` are such
    compiled calls, whatever the size. Everything else, and all on CUDA, is done as in `fused`, which
    uses these kernels where they are the faster ones.

    Example:
        >>> import torch, strategies
        >>> A = torch.eye(2).repeat(3, 1, 1).requires_grad_()
        >>> strategies.linalg.lu_factor(A, strategy="batch_last").LU.sum().backward()
        >>> A.grad[2].tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    name = "batch_last"
    summary = "compiled calls that compute several small matrices side by side; else fused"
    fused = ("packs", *Fused.fused)
