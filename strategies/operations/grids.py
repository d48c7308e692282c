"""The cells that are measured: tiny, quick, cpu and full grids, as plain text and numbers.

An operation's record names one of the tables below; `strategies.measuring.grid_cases` makes cases
of it. tiny shows that everything runs, quick takes minutes, full hours. cpu is what a policy for
the CPU rests on: steps of 4× in size, of 2× for square matrices, and of some 12× in batch. Between
its cells a policy takes means over the nearest ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

GRIDS = ("tiny", "quick", "cpu", "full")

REAL = ("float64", "float32")
ALL = ("float64", "float32", "complex128", "complex64")


@dataclass(frozen=True)
class Block:
    """A product of shapes, batches, dtypes and condition numbers.

    Attributes:
        shapes: separated by commas: "1024x1024", and with k columns of B or a deficient rank
            "8192x64 k=16", "512x64 rank=16"; with a name of the gallery "20x6 matrix=kahan", where
            "well_posed" stands for all of `gallery.WELL_POSED`.
        batches: numbers of matrices; 0 is one matrix without a batch dimension.
        dtypes: names of torch dtypes.
        log10_conds: log₁₀ of condition numbers; None is the default of a case.
        cuda_shapes: further shapes where there is a CUDA device.
        cuda_batches: further batches there.
    """

    shapes: str
    batches: tuple[int, ...] = (0,)
    dtypes: tuple[str, ...] = ("float64",)
    log10_conds: tuple[int | None, ...] = (None,)
    cuda_shapes: str = ""
    cuda_batches: tuple[int, ...] = ()


@dataclass(frozen=True)
class Blocks:
    """What one grid has of one operation. The first two blocks are timed, the others judged.

    Attributes:
        single: matrices without a batch dimension.
        batched: batches of small matrices.
        conditioned: one shape, at several condition numbers.
        sized: other shapes, at κ = 10.
        gallery: matrices that are hard in a way of their own.
        largest_work: the most multiplications m n min(m, n) · batch on a CPU. A complex one counts
            four times. What is larger is left out.
    """

    single: Block
    batched: Block
    conditioned: Block
    sized: Block
    gallery: Block
    largest_work: int = 2**33


Cells = Mapping[str, Blocks]
"""Blocks by the names of `GRIDS`."""

_CONDS = {"tiny": (1, 5), "quick": (1, 4, 7, 10), "full": tuple(range(1, 16))}
_DEEP = (16, 160, 2000)
_WIDE = (20_000, 200_000)
_HUNDREDS = (100, 10_000, 100_000)


def _judged(grid: str, conditioned: str, sized: str, gallery: str) -> tuple[Block, Block, Block]:
    """The blocks that are judged, of these shapes; names of matrices follow that of the gallery."""
    dtypes = ALL if grid == "full" else ("float64",)
    shape, *names = gallery.split()
    named = ", ".join(f"{shape} matrix={name}" for name in names)
    return (
        Block(conditioned, dtypes=dtypes, log10_conds=_CONDS[grid]),
        Block(sized, dtypes=dtypes, log10_conds=(1,)),
        Block(named, dtypes=dtypes),
    )


def _for_policy(
    quick: Blocks, single: str, batched: str, on_cuda: str, batches: tuple[int, ...] = _DEEP
) -> Blocks:
    """The cpu grid, whose largest cell takes about a second; errors are judged as in quick."""
    return replace(
        quick,
        single=Block(single, dtypes=REAL, cuda_shapes=on_cuda),
        batched=Block(batched, batches, REAL, cuda_batches=_WIDE),
        largest_work=2**27,
    )


def _with(rhs: int, shapes: str) -> str:
    return ", ".join(f"{shape} k={rhs}" for shape in shapes.split(", "))


_LARGE = "4096x4096, 8192x8192"
_LARGE_ON_CUDA = "1024x1024, 2048x2048, 4096x4096"
_THIN_ON_CUDA = "1024x1024, 4096x32, 8192x64, 65536x32"
_MILLION = (1_000_000,)
_TINY = Blocks(Block("8x8"), Block("4x4", (50,)), *_judged("tiny", "48x48", "8x8", "8x8 kahan"))
_QUICK = Blocks(
    Block("32x32, 256x256"),
    Block("4x4", (1000,)),
    *_judged("quick", "48x48", "8x8, 128x128", "12x12 kahan wilkinson_growth graded_rows"),
)
_FULL = Blocks(
    Block("16x16, 256x256, 1024x1024", dtypes=ALL, cuda_shapes=_LARGE),
    Block("4x4, 16x16", (100, 10_000), REAL, cuda_batches=_MILLION),
    *_judged("full", "48x48", "8x8, 24x24, 128x128, 256x256", "12x12 well_posed"),
)
_SIDES = "8x8, 32x32, 64x64, 128x128, 256x256, 512x512"
_SMALL = "3x3, 4x4, 6x6, 8x8, 12x12, 16x16, 24x24, 32x32, 64x64"

SQUARE: Cells = {
    "tiny": _TINY,
    "quick": _QUICK,
    "cpu": _for_policy(_QUICK, _SIDES, _SMALL, _LARGE_ON_CUDA),
    "full": _FULL,
}
"""Square matrices."""

SOLVE: Cells = {
    **SQUARE,
    "cpu": _for_policy(
        _QUICK,
        # One right-hand side takes another path in PyTorch than two.
        ", ".join(_with(k, _SIDES) for k in (1, 2, 4, 16)),
        f"{_SMALL}, {_with(4, '4x4, 16x16')}, {_with(16, '4x4, 8x8, 16x16, 32x32, 64x64')}",
        f"{_LARGE_ON_CUDA}, {_with(16, _LARGE_ON_CUDA)}",
    ),
}
"""Square matrices with right-hand sides."""

_LU_QUICK = replace(
    _QUICK,
    single=Block("32x32, 256x256, 64x256", dtypes=REAL),
    batched=Block("4x4, 16x16", (1000,)),
)
_TALL = "8x8, 32x32, 128x128, 512x512, 32x8, 128x32, 512x128, 128x8, 512x32, 512x8"

LU: Cells = {
    "tiny": replace(_TINY, single=Block("8x8, 48x48")),
    "quick": _LU_QUICK,
    "cpu": _for_policy(
        _LU_QUICK,
        f"{_TALL}, 64x64, 256x256, 8x32, 32x128, 128x512, 8x128, 32x512, 8x512",
        "4x4, 8x8, 16x16, 32x32, 64x64, 128x128, 16x4, 4x16, 64x16, 16x64, 256x8, 8x256",
        f"{_LARGE_ON_CUDA}, 8192x8192",
    ),
    "full": replace(
        _FULL,
        single=Block(
            "16x16, 64x64, 256x256, 512x512, 1024x1024, 2048x2048, 1024x128, 128x1024",
            dtypes=ALL,
            cuda_shapes=_LARGE,
        ),
        batched=Block(
            "4x4, 8x8, 32x32", _HUNDREDS, REAL, cuda_shapes="16x16", cuda_batches=_MILLION
        ),
    ),
}
"""Square, tall and wide matrices."""

_TALL_TINY = Blocks(
    Block("64x8"), Block("8x4", (50,)), *_judged("tiny", "80x10", "16x2", "16x4 kahan")
)
_TALL_QUICK = Blocks(
    Block("32x32, 2048x32, 64x16 rank=5", dtypes=REAL),
    Block("4x4, 16x4", (1000,)),
    *_judged("quick", "80x10", "16x2, 320x40", "20x6 kahan graded_columns half_rank"),
)
_TALL_FULL = Blocks(
    Block(
        "16x16, 256x256, 512x64, 64x512, 4096x32, 8192x64, 16384x32, 200000x4, 512x64 rank=16",
        dtypes=ALL,
        cuda_shapes="65536x64",
    ),
    Block("4x4, 16x4, 64x16", _HUNDREDS, REAL),
    *_judged(
        "full",
        "80x10",
        "16x2, 40x5, 320x40, 1280x160",
        "20x6 well_posed first_column_zero last_half_columns_zero half_rank",
    ),
)
_TALL_BATCHED = "4x4, 16x16, 64x64, 16x4, 64x16, 64x4, 256x8, 24x24"
_DEFICIENT = (
    "6x6 rank=3, 24x10 rank=5, 32x32 rank=16, 128x128 rank=64, 128x8 rank=4, 512x32 rank=16"
)
_DEFICIENT_BATCHED = "16x16 rank=8, 64x16 rank=8, 64x4 rank=2, 256x8 rank=4"

PINV: Cells = {
    "tiny": replace(
        _TALL_TINY, single=Block("64x8, 16x4 rank=2"), gallery=Block("16x4 matrix=half_rank")
    ),
    "quick": _TALL_QUICK,
    "cpu": _for_policy(
        _TALL_QUICK,
        f"{_TALL}, 48x24, 48x48, 64x16, 64x32, 64x64, {_DEFICIENT}",
        f"{_TALL_BATCHED}, 48x12, {_DEFICIENT_BATCHED}",
        _THIN_ON_CUDA,
    ),
    "full": _TALL_FULL,
}
"""Matrices of any shape and rank, mostly tall."""

_LSTSQ_QUICK = replace(_TALL_QUICK, single=Block("32x32, 1024x32, 1024x32 k=16", dtypes=REAL))

LSTSQ: Cells = {
    "tiny": _TALL_TINY,
    "quick": _LSTSQ_QUICK,
    "cpu": _for_policy(
        _LSTSQ_QUICK,
        f"{_TALL}, {_with(16, '8x8, 32x32, 128x128, 512x512, 32x8, 128x8, 512x32, 128x32')}, "
        f"{_with(16, '256x128, 512x8, 512x128')}, {_with(4, '256x4, 128x8, 512x8, 512x256')}, "
        f"{_DEFICIENT}",
        f"{_TALL_BATCHED}, {_with(4, '12x12, 24x24, 64x24')}, "
        f"{_with(16, '4x4, 16x16, 64x64, 64x16')}, {_DEFICIENT_BATCHED}",
        f"{_THIN_ON_CUDA}, {_with(16, _THIN_ON_CUDA)}",
        (4, *_DEEP),
    ),
    "full": replace(
        _TALL_FULL,
        single=Block(
            "16x16, 256x256, 512x64, 64x512, 8192x64, 200000x4, 8192x64 k=16, 512x64 rank=16",
            dtypes=ALL,
            cuda_shapes="65536x64",
        ),
    ),
}
"""Matrices of any shape and rank, mostly tall, with right-hand sides."""
