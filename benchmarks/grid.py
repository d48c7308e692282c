"""The cases that are measured: tiny, quick, cpu and full grids of them.

asv starts a process for every combination of parameters, n/a ones included. A grid is therefore
made of dense blocks, one for single matrices and one for batches, and not of a sparse product of
everything. For the same reason the devices are those that are there, and the largest cases are there
only if a CUDA device is; each result file carries its own parameters, so results of machines with
and without CUDA read together.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import torch

import strategies
from strategies.accuracy.classes import WELL_POSED
from strategies.measuring import Case

PARAMETERS = ["strategy", "shape", "batch", "dtype", "device"]

REAL = ("float64", "float32")
ALL = ("float64", "float32", "complex128", "complex64")


@dataclass(frozen=True)
class Block:
    """A product of shapes, batches and dtypes.

    Attributes:
        shapes: separated by commas: "1024x1024", and with k columns of B or a deficient rank
            "8192x64 k=16", "512x64 rank=16"; with a name of the gallery "20x6 matrix=kahan".
        batches: numbers of matrices; 0 is one matrix without a batch dimension.
        dtypes: names of torch dtypes.
        cuda_shapes: further shapes where there is a CUDA device.
        cuda_batches: further batches there.
    """

    shapes: str
    batches: tuple[int, ...] = (0,)
    dtypes: tuple[str, ...] = ("float64",)
    cuda_shapes: str = ""
    cuda_batches: tuple[int, ...] = ()

    @property
    def params(self) -> list[list[str] | list[int]]:
        """The lists of values that asv combines, in the order of `PARAMETERS`."""
        there = devices()
        shapes, batches = self.shapes.split(", "), list(self.batches)
        if len(there) > 1:
            shapes += self.cuda_shapes.split(", ") if self.cuda_shapes else []
            batches += self.cuda_batches
        return [list(strategies.available()), shapes, batches, list(self.dtypes), there]


@dataclass(frozen=True)
class Grid:
    """The blocks of every operation.

    Attributes:
        single: by operation, matrices without a batch dimension.
        batched: by operation, batches of small matrices.
        conditioned: by operation, the shape at which conditioning is varied.
        log10_conds: the condition numbers that are tried there.
        sized: by operation, the shapes at which errors are compared besides that one.
        gallery: by operation, the named matrices at which errors are compared.
        largest_work: the most multiplications m n min(m, n) · batch; what is larger is n/a.
        largest_reference: the most multiplications m n min(m, n) for which the exact gradient is
            computed. 1024³ takes a minute or two of ball arithmetic, 256³ a second.
    """

    single: dict[str, Block]
    batched: dict[str, Block]
    conditioned: dict[str, Block]
    log10_conds: tuple[int, ...]
    sized: dict[str, Block]
    gallery: dict[str, Block]
    largest_work: float = math.inf
    largest_reference: int = 1024**3

    def conditioned_params(self, operation: str) -> list[list[str] | list[int]]:
        """As `Block.params`, with the condition numbers as a last list."""
        return [*self.conditioned[operation].params, list(self.log10_conds)]

    def sized_params(self, operation: str) -> list[list[str] | list[int]]:
        """As `conditioned_params`, at κ = 10."""
        return [*self.sized[operation].params, [1]]


def devices() -> list[str]:
    """The CPU and every CUDA device, found without starting CUDA: asv forks after this."""
    return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def case_of(
    operation: str, shape: str, batch: int, dtype: str, device: str, log10_cond: int | None = None
) -> Case:
    """The case that a combination of asv parameters stands for.

    Example:
        >>> case_of("lstsq", "8192x64 k=16", 0, "float32", "cpu").label
        'lstsq 8192x64 k=16 float32 cpu'
    """
    dims, *words = shape.split()
    m, n = map(int, dims.split("x"))
    options = dict(word.split("=") for word in words)
    return Case(
        operation,
        (m, n),
        batch,
        getattr(torch, dtype),
        device,
        rhs=int(options.get("k", 1)),
        rank=int(options["rank"]) if "rank" in options else None,
        matrix=options.get("matrix"),
        log10_cond=log10_cond,
    )


def is_affordable(case: Case, strategy: str) -> bool:
    """Whether a machine with 8 GB, or the CUDA device, can be asked to run it in a minute or so."""
    m, n = case.shape
    batch, itemsize = max(case.batch, 1), case.dtype.itemsize
    on_cpu = case.device == "cpu"
    if m * n * min(m, n) * batch > min(CHOSEN.largest_work, 2**33 if on_cpu else math.inf):
        return False
    if batch * m * n * itemsize > (2**28 if on_cpu else 2**31):
        return False
    if case.dtype.is_complex and min(m, n) > (1024 if on_cpu else 4096):
        return False
    # PyTorch's backward makes two matrices of the larger dimension squared. (2.13)
    squares = strategy == "native" and case.operation in ("pinv", "lstsq") and m != n
    return not squares or 2 * batch * max(m, n) ** 2 * itemsize <= _memory(case.device)


def _memory(device: str) -> float:
    """Bytes that a case may take there."""
    if device == "cpu":
        return 5e9
    return 0.9 * float(torch.cuda.get_device_properties(device).total_memory)


def has_affordable_reference(case: Case) -> bool:
    """Whether the exact gradient is worth the time that it takes."""
    return math.prod(case.shape) * min(case.shape) <= CHOSEN.largest_reference


_SQUARE = ("solve", "inv", "det")


def _everywhere(**blocks: Block) -> dict[str, Block]:
    """Blocks by operation; "square" stands for solve, inv and det."""
    square = blocks.pop("square")
    return {**blocks, **dict.fromkeys(_SQUARE, square)}


_CONDITIONED = _everywhere(
    lu_factor=Block("48x48", dtypes=ALL),
    pinv=Block("80x10", dtypes=ALL),
    lstsq=Block("80x10", dtypes=ALL),
    square=Block("48x48", dtypes=ALL),
)


def _matrices(shape: str, names: str) -> str:
    return ", ".join(f"{shape} matrix={name}" for name in names.split())


_HARD = "kahan wilkinson_growth graded_rows"
_HARD_TALL = "kahan graded_columns half_rank"
_FULL_RANK = " ".join(WELL_POSED)
_ANY_RANK = f"{_FULL_RANK} first_column_zero last_half_columns_zero half_rank"

FULL = Grid(
    single=_everywhere(
        lu_factor=Block(
            "16x16, 64x64, 256x256, 512x512, 1024x1024, 2048x2048, 1024x128, 128x1024",
            dtypes=ALL,
            cuda_shapes="4096x4096, 8192x8192",
        ),
        pinv=Block(
            "16x16, 256x256, 512x64, 64x512, 4096x32, 8192x64, 16384x32, 200000x4, 512x64 rank=16",
            dtypes=ALL,
            cuda_shapes="65536x64",
        ),
        lstsq=Block(
            "16x16, 256x256, 512x64, 64x512, 8192x64, 200000x4, 8192x64 k=16, 512x64 rank=16",
            dtypes=ALL,
            cuda_shapes="65536x64",
        ),
        square=Block("16x16, 256x256, 1024x1024", dtypes=ALL, cuda_shapes="4096x4096, 8192x8192"),
    ),
    batched=_everywhere(
        lu_factor=Block(
            "4x4, 8x8, 32x32",
            (100, 10_000, 100_000),
            REAL,
            cuda_shapes="16x16",
            cuda_batches=(1_000_000,),
        ),
        pinv=Block("4x4, 16x4, 64x16", (100, 10_000, 100_000), REAL),
        lstsq=Block("4x4, 16x4, 64x16", (100, 10_000, 100_000), REAL),
        square=Block("4x4, 16x16", (100, 10_000), REAL, cuda_batches=(1_000_000,)),
    ),
    conditioned=_CONDITIONED,
    log10_conds=(*range(1, 16),),
    sized=_everywhere(
        lu_factor=Block("8x8, 24x24, 128x128, 256x256", dtypes=ALL),
        pinv=Block("16x2, 40x5, 320x40, 1280x160", dtypes=ALL),
        lstsq=Block("16x2, 40x5, 320x40, 1280x160", dtypes=ALL),
        square=Block("8x8, 24x24, 128x128, 256x256", dtypes=ALL),
    ),
    gallery=_everywhere(
        lu_factor=Block(_matrices("12x12", _FULL_RANK), dtypes=ALL),
        pinv=Block(_matrices("20x6", _ANY_RANK), dtypes=ALL),
        lstsq=Block(_matrices("20x6", _ANY_RANK), dtypes=ALL),
        square=Block(_matrices("12x12", _FULL_RANK), dtypes=ALL),
    ),
)

QUICK = Grid(
    single=_everywhere(
        lu_factor=Block("32x32, 256x256, 64x256", dtypes=REAL),
        pinv=Block("32x32, 2048x32, 64x16 rank=5", dtypes=REAL),
        lstsq=Block("32x32, 1024x32, 1024x32 k=16", dtypes=REAL),
        square=Block("96x96"),
    ),
    batched=_everywhere(
        lu_factor=Block("4x4, 16x16", (1000,)),
        pinv=Block("4x4, 16x4", (1000,)),
        lstsq=Block("4x4, 16x4", (1000,)),
        square=Block("4x4", (1000,)),
    ),
    conditioned={name: Block(block.shapes) for name, block in _CONDITIONED.items()},
    log10_conds=(1, 4, 7, 10),
    sized=_everywhere(
        lu_factor=Block("8x8, 128x128"),
        pinv=Block("16x2, 320x40"),
        lstsq=Block("16x2, 320x40"),
        square=Block("8x8, 128x128"),
    ),
    gallery=_everywhere(
        lu_factor=Block(_matrices("12x12", _HARD)),
        pinv=Block(_matrices("20x6", _HARD_TALL)),
        lstsq=Block(_matrices("20x6", _HARD_TALL)),
        square=Block(_matrices("12x12", _HARD)),
    ),
)

_TALL = "8x8, 32x32, 128x128, 512x512, 32x8, 128x32, 512x128, 128x8, 512x32, 512x8"
_TALL_BATCHED = "4x4, 16x16, 64x64, 16x4, 64x16, 64x4, 256x8"
_DEFICIENT_BATCHED = "16x16 rank=8, 64x16 rank=8, 64x4 rank=2, 256x8 rank=4"
_SIDES = "8x8, 32x32, 64x64, 128x128, 256x256, 512x512"
_SIDES_BATCHED = "4x4, 8x8, 16x16, 32x32, 64x64"
_SQUARE_BATCHED = "4x4, 6x6, 8x8, 12x12, 16x16, 24x24, 32x32, 64x64"
_DEEP = (16, 160, 2000)


def _with(rhs: int, shapes: str) -> str:
    return ", ".join(f"{shape} k={rhs}" for shape in shapes.split(", "))


CPU = Grid(
    single=_everywhere(
        lu_factor=Block(
            f"{_TALL}, 64x64, 256x256, 8x32, 32x128, 128x512, 8x128, 32x512, 8x512", dtypes=REAL
        ),
        pinv=Block(
            f"{_TALL}, 48x24, 48x48, 64x16, 64x32, 64x64, "
            "32x32 rank=16, 128x128 rank=64, 128x8 rank=4, 512x32 rank=16",
            dtypes=REAL,
        ),
        lstsq=Block(
            f"{_TALL}, {_with(16, '8x8, 32x32, 128x128, 512x512, 32x8, 128x8, 512x32, 128x32')}, "
            f"{_with(16, '256x128, 512x8, 512x128')}, {_with(4, '256x4, 128x8, 512x8, 512x256')}, "
            "32x32 rank=16, 128x128 rank=64, 128x8 rank=4, 512x32 rank=16",
            dtypes=REAL,
        ),
        square=Block(_SIDES, dtypes=REAL),
    )
    # One right-hand side is another case in PyTorch than two.
    | {"solve": Block(", ".join(_with(k, _SIDES) for k in (1, 2, 4, 16)), dtypes=REAL)},
    batched=_everywhere(
        lu_factor=Block(
            f"{_SIDES_BATCHED}, 128x128, 16x4, 4x16, 64x16, 16x64, 256x8, 8x256", _DEEP, REAL
        ),
        pinv=Block(f"{_TALL_BATCHED}, 24x24, 48x12, {_DEFICIENT_BATCHED}", _DEEP, REAL),
        lstsq=Block(
            f"{_TALL_BATCHED}, 24x24, {_with(4, '24x24, 64x24')}, "
            f"{_with(16, '4x4, 16x16, 64x64, 64x16')}, {_DEFICIENT_BATCHED}",
            (4, *_DEEP),
            REAL,
        ),
        square=Block(_SQUARE_BATCHED, _DEEP, REAL),
    )
    | {
        "solve": Block(
            f"{_SQUARE_BATCHED}, {_with(4, '4x4, 16x16')}, "
            f"{_with(16, '4x4, 8x8, 16x16, 32x32, 64x64')}",
            _DEEP,
            REAL,
        )
    },
    conditioned=QUICK.conditioned,
    log10_conds=QUICK.log10_conds,
    sized=QUICK.sized,
    gallery=QUICK.gallery,
    largest_work=2**27,
    largest_reference=2**22,
)
"""What a policy for the CPU needs, up to a second's work: steps of 4× in size, of 2× for square
matrices, and of some 12× in batch. Between its cells a policy takes means over the nearest ones."""

TINY = Grid(
    single=_everywhere(
        lu_factor=Block("8x8, 48x48"),
        pinv=Block("64x8, 16x4 rank=2"),
        lstsq=Block("64x8"),
        square=Block("8x8"),
    ),
    batched=_everywhere(
        lu_factor=Block("4x4", (50,)),
        pinv=Block("8x4", (50,)),
        lstsq=Block("8x4", (50,)),
        square=Block("4x4", (50,)),
    ),
    conditioned={name: Block(block.shapes) for name, block in _CONDITIONED.items()},
    log10_conds=(1, 5),
    sized=_everywhere(
        lu_factor=Block("8x8"), pinv=Block("16x2"), lstsq=Block("16x2"), square=Block("8x8")
    ),
    gallery=_everywhere(
        lu_factor=Block("8x8 matrix=kahan"),
        pinv=Block("16x4 matrix=half_rank"),
        lstsq=Block("16x4 matrix=kahan"),
        square=Block("8x8 matrix=kahan"),
    ),
)

GRIDS = {"tiny": TINY, "quick": QUICK, "cpu": CPU, "full": FULL}


def chosen_name() -> str:
    """The grid that BACKWARD_STRATEGIES_GRID names: tiny, quick, cpu or full, which is the default.

    Raises:
        ValueError: if it names another.
    """
    name = os.environ.get("BACKWARD_STRATEGIES_GRID", "full")
    if name not in GRIDS:
        raise ValueError(f"BACKWARD_STRATEGIES_GRID={name!r}: known grids are {', '.join(GRIDS)}")
    return name


CHOSEN = GRIDS[chosen_name()]
