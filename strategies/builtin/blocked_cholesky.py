"""The reverse of a Cholesky factorization, block by block, in one buffer."""

import torch
from torch import Tensor

from strategies.formulas.domains import hermitian_part
from strategies.kernels.large_pages import uninitialized


def reverse(L: Tensor, cotangent: Tensor, width: int) -> Tensor:
    """The Hermitian gradient of A = L Lᴴ, from the last diagonal block to the first.

    The factorization takes S ← S − L₂₁ L₂₁ᴴ right of and below a block. So with S the finished gradient
    of what is there, and the halves that are left and above it equal,

        Ā₂₁ = (L̄₂₁ / 2 − S L₂₁) L₁₁⁻¹               L̄₁₁ ← L̄₁₁ − 2 tril(Ā₂₁ᴴ L₂₁),

    and the block by itself (Murray 2016, section 4, with S as a whole instead of its lower triangle):
    2n³/3 + O(n²·width) operations for the n³/3 of the factorization. Nearly all are in S L₂₁.

    The factor and its cotangent, of which only the lower triangle is read, have one dimension of a batch
    at most.
    """
    n = L.shape[-1]
    is_single = L.ndim == 2
    multiply = torch.mm if is_single else torch.bmm
    multiply_add = torch.addmm if is_single else torch.baddbmm
    S = uninitialized(L, *L.shape)
    blocks, identities = diagonal_blocks(L, n, min(width, n))
    inverses = torch.linalg.solve_triangular(blocks, identities, upper=False)
    for start in reversed(range(0, n, width)):
        stop = min(start + width, n)
        inverse = inverses[start // width, ..., : stop - start, : stop - start]
        bar = cotangent[..., start:stop, start:stop]
        if stop < n:
            L21, left = (each[..., stop:, start:stop] for each in (L, cotangent))
            left = multiply_add(left, S[..., stop:, stop:], L21, beta=0.5, alpha=-1)
            left = multiply(left, inverse)
            above = left.mH
            S[..., stop:, start:stop], S[..., start:stop, stop:] = left, above
            bar = multiply_add(bar, above, L21, alpha=-2)
        middle = multiply(L[..., start:stop, start:stop].mH, bar.tril()).tril_()
        middle.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        block = multiply(multiply(inverse.mH, middle), inverse)
        S[..., start:stop, start:stop] = hermitian_part(block)
    return S


def diagonal_blocks(matrix: Tensor, k: int, size: int) -> tuple[Tensor, Tensor]:
    """Those of the leading k rows and columns, counted in front, and as many identities.

    Padded by the identity to one size, they are inverted in one call.
    """
    identity = torch.eye(size, dtype=matrix.dtype, device=matrix.device)
    count = -(-k // size) if k else 0
    identities = identity.expand(count, *matrix.shape[:-2], size, size)
    blocks = identities.clone()
    for i in range(count):
        start, stop = i * size, min((i + 1) * size, k)
        blocks[i, ..., : stop - start, : stop - start] = matrix[..., start:stop, start:stop]
    return blocks, identities
