"""What has to be known of a problem to choose kernels for it, and what passes between these."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch

from strategies.kernels.cpu.tensor_specs import TensorSpec, rows, vector

TRIANGULAR = "solve_lower", "solve_upper", "solve_unit_lower", "solve_unit_upper"
"""What `solve_triangular` stands for."""

BY_LU = "lu_solve", "lu_solve_adjoint"
"""What `lu_solve` stands for."""

_FEWEST_ACROSS = 4
"""Matrices of a batch from which on there are packs of them to compute side by side."""

_FEW, _MOST_OF_FEW = 8, 1296
"""Fewer matrices are one pack, which has one thread and may be half empty: up to so many real entries."""

_ACROSS = {
    "inv": (25, 2304),
    "inv_ex": (25, 2304),
    "inv_backward": (25, 144),
    "solve": (16, 4096),
    "solve_ex": (16, 4096),
    "solve_backward": (16, 576),
    "det": (16, 4096),
    "det_backward": (25, 4096),
    "slogdet": (25, 4096),
    "slogdet_backward": (25, 4096),
    "lu_factor": (1, 4096),
    "lu_factor_ex": (1, 4096),
    "lu_factor_backward": (1, 4096),
    **dict.fromkeys(BY_LU, (1, 4096)),
    **dict.fromkeys(TRIANGULAR, (1, 1024)),
    "cholesky": (25, 4096),
    "cholesky_ex": (25, 4096),
    "cholesky_backward": (25, 2304),
    "pinv": (1, 1152),
    "pinv_square": (1, 2304),
    "pinv_backward": (1, 512),
    "lstsq": (1, 4608),
    "lstsq_square": (1, 4096),
    "lstsq_backward": (1, 512),
    "qr": (1, 1152),
    "qr_backward": (1, 512),
}
"""Entries of a real matrix from which on packs are faster than matrix after matrix, and up to which.

Of complex matrices they are from the smallest on.
"""


class Problem(NamedTuple):
    """What a spec has to know of the inputs: each A is m×n, and B, if there is one, m×k."""

    m: int
    n: int
    k: int
    is_vector: bool
    dtype: torch.dtype
    matrices: int
    always_across: bool = False

    def like_rhs(self, length: int) -> TensorSpec:
        """A matrix in the place of B, or a vector."""
        return vector(length, self.dtype) if self.is_vector else rows(length, self.k, self.dtype)

    def kernel(self, name: str) -> str:
        """The name of the kernel that is the fastest: matrix after matrix, or in packs."""
        fewest, most = _ACROSS[name]
        fewest = 1 if self.dtype.is_complex else fewest
        if self.matrices < _FEW:
            most = min(most, _MOST_OF_FEW // (1 + self.dtype.is_complex))
        pays = self.matrices >= _FEWEST_ACROSS and fewest <= self.m * self.n <= most
        return f"{name}_across" if pays or self.always_across else name

    def kernels(self, name: str) -> tuple[str, str]:
        """Those of an operation and of its backward."""
        return self.kernel(name), self.kernel(f"{name}_backward")


@dataclass(frozen=True)
class KernelSpec:
    """What passes between the two kernels of an operation, said of one matrix.

    Attributes:
        forward: the kernel that reads the inputs, and writes the outputs that are not empty and `kept`.
        backward: the kernel that reads `reads` and the cotangents, and writes the gradients.
        outputs: of the operation.
        kept: what the backward reads besides inputs and outputs.
        reads: positions in inputs, outputs and kept, in this order.
        flops: floating-point operations of the two in real numbers, leading terms.
        cotangents: positions of the outputs whose cotangents the backward reads.
        optional: positions of those of which a cotangent may be missing.
        ignored: positions of differentiable outputs that are constant wherever they have a derivative.
        is_transposed: whether kernels see the transpose of A and its gradient, and of the cotangent.
        by_columns: whether kernels write the gradient of the matrix that they see by columns.
        rank: position of an output, and of one that is empty unless the first is n everywhere; if any.
        any_rank: whether A may be deficient.
    """

    forward: str
    backward: str
    outputs: Sequence[TensorSpec]
    kept: Sequence[TensorSpec]
    reads: Sequence[int]
    flops: tuple[float, float]
    cotangents: Sequence[int] = (0,)
    optional: Sequence[int] = ()
    ignored: Sequence[int] = ()
    is_transposed: bool = False
    by_columns: bool = False
    rank: tuple[int, int] | None = None
    any_rank: bool = False

    def batched(self, batch: tuple[int, ...]) -> Self:
        """The same of a batch of matrices."""
        outputs, kept = ([t.batched(batch) for t in specs] for specs in (self.outputs, self.kept))
        return dataclasses.replace(self, outputs=outputs, kept=kept)
