"""The reverse of an LU or Cholesky factorization, block by block, in one buffer."""

import math

import torch
from torch import Tensor

from strategies.builtin import blocked_cholesky
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import PackedLU
from strategies.formulas.lu import permute_rows
from strategies.kernels.cpu import calls


class BlockedLU(TriangularSolve):
    """Reverses the elimination from the last diagonal block to the first.

    The classical formula costs two full products and two full solves. Going through the blocks in
    reverse, with S the finished gradient of what is right of and below a block, reads every number
    as rarely as the elimination wrote it:

        L̄₂₁ ← (L̄₂₁ − S U₁₂ᴴ) U₁₁⁻ᴴ                 Ū₁₂ ← L₁₁⁻ᴴ (Ū₁₂ − L₂₁ᴴ S)
        L̄₁₁ ← L̄₁₁ − tril₋₁(Ū₁₂ U₁₂ᴴ)               Ū₁₁ ← Ū₁₁ − triu(L₂₁ᴴ L̄₂₁)
        Ā₁₁ = L₁₁⁻ᴴ [tril₋₁(L₁₁ᴴ L̄₁₁) + triu(Ū₁₁ U₁₁ᴴ)] U₁₁⁻ᴴ,

    4n³/3 + O(n²·block) operations for the 2n³/3 of the factorization. Square, tall and wide are the
    same loop: S has the rows and columns that are there. On the CPU the loop is compiled: it solves
    with the diagonal blocks and calls the BLAS of torch, in torch's threads
    (`strategies.kernels.cpu`). Elsewhere, or where a build of torch does not export its BLAS, it is
    written in operations of torch and multiplies by inverses of the diagonal blocks, which is faster
    there than solves with many right-hand sides. A Cholesky factorization is reversed likewise
    (`strategies.builtin.blocked_cholesky`). Other operations are those of `triangular_solve`.

    Example:
        >>> import torch, strategies
        >>> A = torch.eye(3, requires_grad=True)
        >>> strategies.linalg.lu_factor(A, strategy="blocked_lu").LU.sum().backward()
        >>> A.grad.tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    name = "blocked_lu"
    summary = "LU and Cholesky reversed block by block; otherwise triangular_solve"

    def lu_backward(self, factors: PackedLU, cotangent: Tensor) -> Tensor:
        LU, inverse_order = factors
        *batch, m, n = LU.shape
        gradient = cotangent.clone(memory_format=torch.contiguous_format)
        if calls.reverse_lu.supports(LU, inverse_order, gradient):
            _call_kernel(LU, inverse_order, gradient)
            return gradient
        if batch:
            LU = LU.reshape(-1, m, n) if LU.numel() else LU.new_empty(0, m, n)
        _reverse(LU, gradient.view(LU.shape))
        return permute_rows(gradient, inverse_order)

    def cholesky_backward(self, L: Tensor, cotangent: Tensor) -> Tensor:
        *batch, n, _ = L.shape
        if not (calls.reverse_cholesky.supports(L, cotangent) and L.numel()):
            of_L, bar = (each.flatten(0, -3) if len(batch) > 1 else each for each in (L, cotangent))
            return blocked_cholesky.reverse(of_L, bar, _width(n, L.device)).view(L.shape)
        L = _by_columns(L)
        if batch and math.prod(batch) < torch.get_num_threads():
            pairs = zip(L.reshape(-1, n, n), cotangent.reshape(-1, n, n), strict=True)
            return torch.stack([calls.reverse_cholesky(*pair) for pair in pairs]).view(L.shape)
        return calls.reverse_cholesky(L, cotangent)


def _width(columns: int, device: torch.device) -> int:
    """Width of the blocks: as even as multiples of 24 allow, and never a power of two.

    Columns that lie a power of two apart compete for the same lines of a cache: products then take
    up to half as long again. On CUDA the number of launches counts.
    """
    if device.type == "cuda":
        return 256
    widest = 72 if columns < 1024 else 96  # as measured
    columns = max(1, columns)
    return 24 * math.ceil(columns / (24 * math.ceil(columns / widest)))


def _call_kernel(LU: Tensor, inverse_order: Tensor, bar: Tensor) -> None:
    """Share the matrices of a batch among the threads, or the blocks of each where there are few."""
    *batch, _, _ = LU.shape
    arguments = (_by_columns(LU).conj(), inverse_order, bar)
    count = math.prod(batch)
    if batch and count < torch.get_num_threads():
        flat = (t.reshape(count, *t.shape[len(batch) :]) for t in arguments)
        for LU_conj, order, bar_of_one in zip(*flat, strict=True):
            calls.reverse_lu(LU_conj, order, bar_of_one)
    else:
        calls.reverse_lu(*arguments)


def _by_columns(factors: Tensor) -> Tensor:
    """The factors with their columns one after the other, in a batch of which one dimension is a view."""
    is_flat = factors.ndim <= 3 or factors.mT.is_contiguous()
    is_by_columns = factors.stride(-2) == 1 and factors.stride(-1) >= factors.shape[-2]
    return factors if is_flat and is_by_columns else factors.mT.contiguous().mT


def _reverse(LU: Tensor, bar: Tensor) -> None:
    """Overwrite the cotangent of the packed factors by the gradient of PᵀA."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    is_single = LU.ndim == 2
    multiply = torch.mm if is_single else torch.bmm
    multiply_add = torch.addmm if is_single else torch.baddbmm
    size = _width(k, LU.device)
    diagonal = _diagonal_blocks(LU, k, size)
    for start in reversed(range(0, k, size)):
        stop = min(start + size, k)
        width = stop - start
        L_H, U_H, inverse_L_H, inverse_U_H = (
            part[start // size, ..., :width, :width] for part in diagonal
        )
        block = bar[..., start:stop, start:stop]
        lower = upper = block
        has_below, has_right = stop < m, stop < n
        below, right = bar[..., stop:, start:stop], bar[..., start:stop, stop:]
        S = bar[..., stop:, stop:]
        L21_H, U12_H = LU[..., stop:, start:stop].mH, LU[..., start:stop, stop:].mH
        if has_below:
            below_left = multiply_add(below, S, U12_H, alpha=-1) if has_right else below.clone()
            multiply(below_left, inverse_U_H, out=below)
            upper = multiply_add(block, L21_H, below, alpha=-1)
        if has_right:
            above_right = multiply_add(right, L21_H, S, alpha=-1) if has_below else right.clone()
            multiply(inverse_L_H, above_right, out=right)
            lower = multiply_add(block, right, U12_H, alpha=-1)
        middle = multiply(L_H, lower.tril(-1)).tril_(-1)
        middle += multiply(upper.triu(), U_H).triu_()
        multiply(multiply(inverse_L_H, middle), inverse_U_H, out=block)


def _diagonal_blocks(LU: Tensor, k: int, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L₁₁ᴴ, U₁₁ᴴ and their inverses for every diagonal block, counted in front."""
    blocks, identities = blocked_cholesky.diagonal_blocks(LU, k, min(size, k))
    U_H = blocks.triu().mH
    L_H = blocks.tril_(-1).add_(identities).mH
    inverse_L_H = torch.linalg.solve_triangular(L_H, identities, upper=True, unitriangular=True)
    inverse_U_H = torch.linalg.solve_triangular(U_H, identities, upper=False)
    return L_H, U_H, inverse_L_H, inverse_U_H
