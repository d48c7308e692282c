"""The tensors of a call: values, dtype and layout."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LOW_PRECISION = (torch.half, torch.bfloat16)
FLOATS = (torch.float64, torch.float32, torch.complex128, torch.complex64)
OTHERS = (*LOW_PRECISION, torch.int64, torch.int32, torch.bool)
VALUES = ("ordinary", "zero", "nan", "inf", "deficient", "huge", "tiny", "identity", "graded")
LAYOUTS = ("contiguous", "transposed", "strided", "slice", "conjugate", "negative", "expanded")
_EXPONENTS = {"huge": (30, 100, 400, 900), "tiny": (-30, -100, -400, -900)}


@dataclass(frozen=True)
class Operand:
    """A tensor that is made anew for every use, so that nothing done to it reaches the next one.

    Attributes:
        base: the entries, without the batch dimensions that are expanded.
        shape: of the tensor.
        layout: one of `LAYOUTS`.
        values: one of `VALUES`.
    """

    base: Tensor
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
    values = values or rng.choices(VALUES, (70, 3, 3, 3, 8, 2, 2, 4, 3))[0]
    layout = rng.choices(LAYOUTS, (50, 10, 10, 10, 10, 10, 10))[0]
    if not dtype.is_floating_point and not dtype.is_complex:
        return Operand(torch.ones(shape).to(dtype), shape, "contiguous", "ones")
    if layout == "conjugate" and not dtype.is_complex:
        layout = "contiguous"
    if layout in ("transposed", "strided", "slice") and len(shape) < 2:
        layout = "contiguous"
    made = shape
    if layout == "expanded":
        made = tuple(1 if i < len(shape) - 2 else size for i, size in enumerate(shape))
    base = _entries(rng, generator, made, _made_in(dtype), values).to(dtype)
    return Operand(base, shape, layout, values)


def _made_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in LOW_PRECISION else dtype


def _entries(
    rng: random.Random,
    generator: torch.Generator,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    values: str,
) -> Tensor:
    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, dtype=dtype, generator=generator)

    A = normal(*shape)
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
            exponent = rng.choice(_EXPONENTS[values])
            largest = 2 if dtype.to_real() == torch.float32 else 3
            exponent = rng.choice(_EXPONENTS[values][:largest])
            A = A * 2.0**exponent
        case "graded" if is_matrix:
            A = A * 2.0 ** (-6.0 * torch.arange(shape[-1]))
        case "nan" | "inf" if A.numel():
            A.view(-1)[rng.randrange(A.numel())] = float(values)
    return A
