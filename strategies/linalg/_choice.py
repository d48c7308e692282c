"""From what the caller wrote as `strategy=` to a `Strategy`."""

from __future__ import annotations

from torch import Tensor

from strategies import registry
from strategies.interface import Strategy

__all__ = ["StrategyChoice", "choose", "require_float_matrix"]

StrategyChoice = str | Strategy


def choose(choice: StrategyChoice) -> Strategy:
    """The strategy that a name or an instance stands for.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        TypeError: it is neither.
    """
    if isinstance(choice, str):
        return registry.get(choice)
    if isinstance(choice, Strategy):
        return choice
    raise TypeError(f"strategy= takes a name or a Strategy, not {type(choice).__name__}")


def require_float_matrix(operation: str, matrix: Tensor, *, square: bool = False) -> None:
    """Raise what `torch.linalg` raises for a tensor that is not a batch of float matrices."""
    if matrix.ndim < 2:
        raise RuntimeError(
            f"linalg.{operation}: The input tensor A must have at least 2 dimensions, "
            f"not shape {tuple(matrix.shape)}."
        )
    if not (matrix.is_floating_point() or matrix.is_complex()):
        raise RuntimeError(
            f"linalg.{operation}: Expected a floating point or complex tensor as input. "
            f"Got {matrix.dtype}"
        )
    if square and matrix.shape[-1] != matrix.shape[-2]:
        raise RuntimeError(
            f"linalg.{operation}: A must be batches of square matrices, "
            f"but they are {matrix.shape[-2]} by {matrix.shape[-1]} matrices"
        )
