"""The tensors of a call: values, dtype and layout."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

LOW_PRECISION = (torch.half, torch.bfloat16)
FLOATS = (torch.float64, torch.float32, torch.complex128, torch.complex64)
OTHERS = (*LOW_PRECISION, torch.int64, torch.int32, torch.bool)
VALUES = (
    *((70, "ordinary"), (3, "zero"), (3, "nan"), (3, "inf"), (8, "deficient")),
    *((2, "huge"), (2, "tiny"), (4, "identity"), (3, "graded")),
)
LAYOUTS = (
    *((50, "contiguous"), (10, "transposed"), (10, "strided"), (10, "slice")),
    *((10, "conjugate"), (10, "negative"), (10, "expanded")),
)
_EXPONENTS = {"huge": (30, 100, 400, 900), "tiny": (-30, -100, -400, -900)}

Choice = TypeVar("Choice")


def weighted(rng: random.Random, choices: Sequence[tuple[float, Choice]]) -> Choice:
    """One of the choices, by their weights."""
    weights, values = zip(*choices, strict=True)
    return rng.choices(values, weights)[0]


@dataclass(frozen=True)
class Operand:
    """A tensor that is made anew for every use, so that nothing done to it reaches the next one."""

    base: Tensor  # without the batch dimensions that are expanded
    shape: tuple[int, ...]
    layout: str
    values: str

    def leaf(self) -> Tensor:
        """The entries, to be required gradients of."""
        return self.base.clone()

    def view(self, leaf: Tensor) -> Tensor:
        """The tensor over such a leaf."""
        match self.layout:
            case "transposed":
                return leaf.mT.contiguous().mT
            case "strided":
                return torch.stack([leaf, leaf], -1).flatten(-2)[..., ::2]
            case "slice":
                return torch.nn.functional.pad(leaf, (1, 2))[..., 1:-2]
            case "conjugate":
                return leaf.conj_physical().conj()
            case "negative":
                return torch._neg_view(-leaf)
            case "expanded":
                return leaf.expand(self.shape)
        return leaf

    def value(self) -> Tensor:
        """The tensor without a gradient."""
        return self.view(self.leaf())

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        dtype = str(self.base.dtype).removeprefix("torch.")
        return f"{dtype}[{sizes}] {self.values} {self.layout}"


@dataclass(frozen=True)
class Literal:
    """What is passed in place of a tensor."""

    content: Any

    def leaf(self) -> Any:
        return self.content

    def view(self, leaf: Any) -> Any:
        return leaf

    def value(self) -> Any:
        return self.content

    def __str__(self) -> str:
        return repr(self.content)


def draw_operand(
    rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype, values: str | None = None
) -> Operand:
    """An operand of this shape and dtype; what else there is to choose is drawn."""
    generator = torch.Generator().manual_seed(rng.getrandbits(40))
    values, layout = values or weighted(rng, VALUES), weighted(rng, LAYOUTS)
    if not dtype.is_floating_point and not dtype.is_complex:
        return Operand(torch.ones(shape).to(dtype), shape, "contiguous", "ones")
    if layout == "conjugate" and not dtype.is_complex:
        layout = "contiguous"
    if layout in ("transposed", "strided", "slice") and len(shape) < 2:
        layout = "contiguous"
    made = shape
    if layout == "expanded":
        made = tuple(1 if i < len(shape) - 2 else size for i, size in enumerate(shape))
    made_in = torch.float32 if dtype in LOW_PRECISION else dtype
    base = _entries(rng, generator, made, made_in, values).to(dtype)
    return Operand(base, shape, layout, values)


def _entries(
    rng: random.Random,
    generator: torch.Generator,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    values: str,
) -> Tensor:
    A = torch.randn(*shape, dtype=dtype, generator=generator)
    is_matrix = len(shape) > 1
    if is_matrix:
        A = A + 2 * torch.eye(*shape[-2:], dtype=dtype)
    match values:
        case "zero":
            A = torch.zeros_like(A)
        case "identity" if is_matrix:
            A = torch.eye(*shape[-2:], dtype=dtype).expand(shape).clone()
        case "deficient" if is_matrix:
            *batch, m, n = shape
            rank = rng.randint(0, max(min(m, n) - 1, 0))
            left, right = (
                torch.randint(-4, 5, sizes, generator=generator).to(dtype)
                for sizes in ((*batch, m, rank), (*batch, rank, n))
            )
            A = left @ right
        case "huge" | "tiny":
            largest = 2 if dtype.to_real() == torch.float32 else 3
            A = A * 2.0 ** rng.choice(_EXPONENTS[values][:largest])
        case "graded" if is_matrix:
            A = A * 2.0 ** (-6.0 * torch.arange(shape[-1]))
        case "nan" | "inf" if A.numel():
            A.view(-1)[rng.randrange(A.numel())] = float(values)
    return A
