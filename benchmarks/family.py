"""`python -m benchmarks.family`: Cholesky, QR and their kin, "auto" beside PyTorch, float64."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from benchmarks.ratio_table import print_ratios
from strategies import linalg
from strategies.cli.common import reports_errors
from strategies.measuring.clock import sampler
from strategies.measuring.timing import interleaved

Inputs = Sequence[Tensor]


def _general(*size: int) -> Tensor:
    return torch.randn(size, dtype=torch.float64)


def _definite(*size: int) -> Tensor:
    A = _general(*size)
    return A @ A.mT / size[-1] + torch.eye(size[-1], dtype=A.dtype)


def _factor(n: int) -> Tensor:
    return torch.linalg.cholesky(_definite(n, n))


_MAKE: Mapping[str, Callable[..., Inputs]] = {
    "cholesky": lambda *size: (_definite(*size),),
    "cholesky_inverse": lambda n, _: (_factor(n),),
    "cholesky_solve": lambda n, _, k: (_general(n, k), _factor(n)),
    "eig": lambda *size: (_general(*size),),
    "lu_solve": lambda n, _, k: (*torch.linalg.lu_factor(_general(n, n)), _general(n, k)),
    "qr": lambda *size: (_general(*size),),
    "solve_triangular": lambda n, _, k: (_factor(n).mT.contiguous(), _general(n, k)),
}
"""The inputs from the numbers of a row: sizes, and right-hand sides where there are any."""

ROWS = (
    *(f"cholesky {size}" for size in ("512x512", "1024x1024", "2048x2048")),
    *(f"cholesky {size}" for size in ("100000x4x4", "1000x16x16", "100x64x64")),
    *(f"lu_solve {size} k=1" for size in ("1024x1024", "2048x2048")),
    *(f"cholesky_solve {size} k=1" for size in ("1024x1024", "2048x2048")),
    "cholesky_inverse 1024x1024",
    *(f"qr {size}" for size in ("1000x1000", "4096x32", "1000x16x4")),
    *(f"solve_triangular {size}" for size in ("64x64 k=1", "1024x1024 k=1", "1024x1024 k=64")),
    *(f"eig {size}" for size in ("32x32", "256x256")),
)


@reports_errors
def main(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW]...", help='As "qr 64x8".')
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for the rounds of a row.")] = 2.0,
) -> None:
    """Time "auto" and PyTorch in the same rounds, and print how often faster "auto" is."""
    print_ratios(rows or ROWS, lambda row: _ratios(row, budget))


def _ratios(row: str, budget: float) -> list[tuple[float, float, float]]:
    """Of both and of the backward, each with its interval."""
    name, size, *rest = row.split()
    if name not in _MAKE:
        raise ValueError(f"{row}: there is {', '.join(_MAKE)}")
    numbers = [*map(int, size.split("x")), *(int(part.removeprefix("k=")) for part in rest)]
    torch.manual_seed(0)
    inputs = _MAKE[name](*numbers)
    native = getattr(torch.linalg, name, None) or getattr(torch, name)
    options = {"upper": True} if name == "solve_triangular" else {}
    functions = [partial(each, **options) for each in (native, getattr(linalg, name))]
    found = []
    for is_whole in (True, False):
        calls = (_backward(function, inputs, is_whole) for function in functions)
        samplers = dict(zip(("torch", "auto"), map(sampler, calls), strict=True))
        timings = interleaved(samplers, budget=budget)
        found.append(timings["torch"].over(timings["auto"]))
    return found


def _backward(function: Any, inputs: Inputs, is_whole: bool) -> Callable[[], object]:
    """The backward alone, or with its forward."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    wanted = [x for x in leaves if x.requires_grad]

    def forward() -> list[Tensor]:
        result = function(*leaves)
        outputs = (result,) if isinstance(result, Tensor) else result
        return [output for output in outputs if output.requires_grad]

    outputs = forward()
    # Of `eig`: eigenvectors are determined up to a factor, on which a loss must not depend.
    cotangents = [
        output.detach() if output.is_complex() else torch.randn_like(output) for output in outputs
    ]
    if is_whole:
        return lambda: torch.autograd.grad(forward(), wanted, cotangents)
    return lambda: torch.autograd.grad(outputs, wanted, cotangents, retain_graph=True)


if __name__ == "__main__":
    typer.run(main)
