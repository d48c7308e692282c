"""Names of functions that are in `torch` as well as, by another name, in `torch.linalg`.

`torch.det`, `torch.slogdet`, `torch.logdet` and `torch.matrix_power` have the names that they have here.
"""

from torch import Tensor

from strategies.autograd.choice import StrategyChoice
from strategies.operations.inv import inv
from strategies.operations.out import takes_out
from strategies.operations.pinv import pinv

__all__ = ["inverse", "pinverse"]

RECORDS = ()


@takes_out
def inverse(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """`inv`, as `torch.inverse` is `torch.linalg.inv`.

    Args:
        A: (..., n, n).
        strategy: as in `inv`.

    Returns:
        A⁻¹, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: as in `inv`.
        RuntimeError: as in `inv`.

    Example:
        >>> import torch
        >>> inverse(torch.tensor([[4.0]]))
        tensor([[0.2500]])
    """
    return inv(A, strategy=strategy)


def pinverse(A: Tensor, rcond: float = 1e-15, *, strategy: StrategyChoice = "auto") -> Tensor:
    """`pinv` with the tolerance of `torch.pinverse`.

    Args:
        A: (..., m, n).
        rcond: singular values up to rcond·σ₁ count as zero.
        strategy: as in `pinv`.

    Returns:
        A⁺, (..., n, m).

    Raises:
        torch.linalg.LinAlgError: as in `pinv`.
        RuntimeError: as in `pinv`.

    Example:
        >>> import torch
        >>> pinverse(torch.tensor([[3.0], [4.0]])).round(decimals=4)
        tensor([[0.1200, 0.1600]])
    """
    return pinv(A, rtol=rcond, strategy=strategy)
