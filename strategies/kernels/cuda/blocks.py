"""What Triton kernels share: a few whole matrices in registers, a row of each in a thread.

A matrix is a tuple of its columns, each a block (matrices, rows) of one number a thread. Rows are padded
to a power of two; columns are as many as there are, and loops over them are unrolled. What a thread needs
of another's row is gathered, or read again from memory, where the threads of a matrix read one address.
Arrays are contiguous: the matrices one after the other, row by row.
"""

import triton
import triton.language as tl

kernel = triton.jit(do_not_specialize=["count"])
"""Makes a kernel of a function; it is compiled for each size of the matrices and dtype."""


@triton.jit
def block(count, B: tl.constexpr, M: tl.constexpr, m: tl.constexpr):
    """Which matrices and rows the threads of a program have, and whether these are there."""
    matrices = tl.program_id(0) * B + tl.arange(0, B)
    rows = tl.arange(0, M)[None, :] + tl.zeros((B, 1), tl.int32)
    return matrices, rows, (matrices[:, None] < count) & (rows < m)


@triton.jit
def load_columns(X, matrices, rows, there, m: tl.constexpr, n: tl.constexpr):
    """The columns of matrices, zero where there is nothing; of each, some row for each thread."""
    first = (matrices.to(tl.int64)[:, None] * m + rows) * n
    F = ()
    for j in tl.static_range(n):
        F = F + (tl.load(X + first + j, there, 0.0),)
    return F


@triton.jit
def load_rows(X, matrices, rows, there, m: tl.constexpr, n: tl.constexpr):
    """The rows of matrices, of which each thread has the entry in the column of its number."""
    first = matrices.to(tl.int64)[:, None] * (m * n) + rows
    F = ()
    for i in tl.static_range(m):
        F = F + (tl.load(X + first + i * n, there, 0.0),)
    return F


@triton.jit
def load_entries(X, matrices, count, i, j, m: tl.constexpr, n: tl.constexpr):
    """Entry (i, j) of each matrix, for all of its threads: (matrices, 1)."""
    first = matrices.to(tl.int64) * (m * n) + i * n + j
    return tl.load(X + first, matrices < count, 1)[:, None]


@triton.jit
def store_columns(X, F, matrices, rows, there, m: tl.constexpr, n: tl.constexpr):
    """Columns of matrices to memory; of each, some row from each thread."""
    first = (matrices.to(tl.int64)[:, None] * m + rows) * n
    for j in tl.static_range(n):
        tl.store(X + first + j, F[j], there)


@triton.jit
def times(F, factor, n: tl.constexpr):
    """Columns times a number for each matrix."""
    product = ()
    for j in tl.static_range(n):
        product = product + (F[j] * factor,)
    return product


@triton.jit
def from_row(x, rows):
    """What the threads of other rows have, one row for each thread."""
    return tl.gather(x, rows, 1)


@triton.jit
def normalize(G, n: tl.constexpr):
    """A power of two near the largest entry of a cotangent, and its reciprocal: (matrices, 1).

    Of what is zero, tiny, huge or not finite it is one.
    """
    largest = tl.abs(G[0])
    for j in tl.static_range(1, n):
        largest = tl.maximum(largest, tl.abs(G[j]))
    largest = tl.max(largest, 1)[:, None]
    is_usual = (largest > 1e-37) & (largest < 1e37)
    bits = tl.where(is_usual, largest, 1.0).to(tl.float32).to(tl.int32, bitcast=True)
    exponent = bits & 0x7F800000  # as in the format of single precision, where 2⁰ has 127
    power = exponent.to(tl.float32, bitcast=True)
    reciprocal = (0x7F000000 - exponent).to(tl.float32, bitcast=True)
    return power.to(G[0].dtype), reciprocal.to(G[0].dtype)
