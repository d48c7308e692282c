"""`inv_ex` and `solve_ex`: a singular matrix is reported in `info`, not raised.

What a strategy refuses is left to PyTorch, with the rest of its batch: LAPACK's factors say at which
pivot the elimination ended, and what their division by zero makes of a result.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from strategies.autograd.aten import AtenCalls
from strategies.autograd.choice import (
    StrategyChoice,
    are_matrices,
    are_of_kind,
    choose,
    name_of,
)
from strategies.autograd.operators import Operator
from strategies.errors import LinAlgError
from strategies.kernels.cpu.library import is_available
from strategies.kernels.memory import is_addressable
from strategies.operations.inv import INV_EX_FAST_PATH
from strategies.operations.results import InvExResult, SolveExResult
from strategies.operations.scaled_rule import is_in_safe_range
from strategies.operations.solve import SOLVE_EX_FAST_PATH, solve, solve_workspace
from strategies.operations.traceable import traceable_by

__all__ = ["InvExResult", "SolveExResult", "inv_ex", "solve_ex"]

RECORDS = ()


def _traced_inv_ex(
    A: Tensor, *, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> InvExResult:
    if not are_matrices(A, square=True):
        return InvExResult._make(torch.linalg.inv_ex(A, check_errors=check_errors))
    return InvExResult(*_INV_EX(A, check_errors, name_of(strategy)))


@traceable_by(_traced_inv_ex)
def inv_ex(
    A: Tensor, *, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> InvExResult:
    """`inv` that reports a singular matrix in `info` (the 1-based position of a zero pivot; 0 is none).

    As `torch.linalg.inv_ex`. If a strategy refuses a matrix, the whole batch is PyTorch's.

    Args:
        A: (..., n, n).
        check_errors: raise where a matrix is singular.
        strategy: as in `inv`.

    Returns:
        A⁻¹, (..., n, n), and info, int32 (...). Where info is not zero, A⁻¹ is not finite.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular and `check_errors` is set.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> inv_ex(torch.tensor([[[4.0]], [[0.0]]])).info
        tensor([0, 1], dtype=torch.int32)
    """
    if (outputs := INV_EX_FAST_PATH(strategy, A)) is not None:
        return InvExResult._make(outputs)
    by_torch = functools.cache(lambda: torch.linalg.inv_ex(A, check_errors=check_errors))
    if are_matrices(A, square=True):
        if (found := _if_singular(strategy, A, by_torch)) is not None:
            return InvExResult._make(found)
        try:
            candidates = choose(strategy, "inv", A, square=True, any_rank=True)
            return InvExResult(INV_EX_FAST_PATH.general(candidates, A)[0], _none(A))
        except LinAlgError:
            pass
    return InvExResult._make(by_torch())


def _traced_solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> SolveExResult:
    if not (are_matrices(A, square=True) and are_of_kind(A, B)):
        return SolveExResult._make(
            torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
        )
    return SolveExResult(*_SOLVE_EX(A, B, left, check_errors, name_of(strategy)))


@traceable_by(_traced_solve_ex)
def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> SolveExResult:
    """`solve` that reports a singular matrix in `info` (the 1-based position of a zero pivot; 0 is none).

    As `torch.linalg.solve_ex`. If a strategy refuses a matrix, the whole batch is PyTorch's.

    Args:
        A: (..., n, n).
        B: as in `solve`.
        left: as in `solve`.
        check_errors: raise where a matrix is singular.
        strategy: as in `solve`.

    Returns:
        X as in `solve`, and info, int32 (...) as A has batch dimensions. Where info is not zero, X is not
        finite.

    Raises:
        torch.linalg.LinAlgError: a matrix is singular and `check_errors` is set.
        RuntimeError: shapes or dtypes do not fit together.

    Example:
        >>> solve_ex(torch.tensor([[2.0]]), torch.tensor([4.0])).result
        tensor([2.])
    """
    if left and (outputs := SOLVE_EX_FAST_PATH(strategy, A, B)) is not None:
        return SolveExResult._make(outputs)
    by_torch = functools.cache(
        lambda: torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    )
    if are_matrices(A, square=True) and are_of_kind(A, B):
        if (found := _if_singular(strategy, A, by_torch)) is not None:
            return SolveExResult._make(found)
        try:
            return SolveExResult(solve(A, B, left=left, strategy=strategy), _none(A))
        except LinAlgError:
            pass
    return SolveExResult._make(by_torch())


def _if_singular(strategy: StrategyChoice, A: Tensor, by_torch: Callable[[], Any]) -> Any:
    """What PyTorch returns, if a pivot is zero although no norm is far from one: no strategy takes that.

    Asked only where kernels have declined: None of other matrices, and of those whose values are not to be
    read.
    """
    is_declined = strategy == "auto" and A.is_cpu and is_available() and is_addressable(A)
    if not (is_declined and is_in_safe_range(A)):
        return None
    found = by_torch()
    return found if int(found.info.count_nonzero()) else None


def _none(A: Tensor) -> Tensor:
    """The info of matrices none of which is singular."""
    return torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)


_INV_EX = Operator(
    "inv_ex",
    ["A"],
    "bool check_errors",
    outputs=2,
    measured_as="inv",
    any_rank=True,
    fast_paths=[(INV_EX_FAST_PATH, [...])],
)
_SOLVE_EX = Operator(
    "solve_ex",
    ["A", "B"],
    "bool left, bool check_errors",
    outputs=2,
    measured_as="solve",
    any_rank=True,
    takes_vectors=True,
    fast_paths=[(SOLVE_EX_FAST_PATH, [True, ...])],
    workspace=solve_workspace,
)

ATEN = (
    AtenCalls("linalg_inv_ex", INV_EX_FAST_PATH, [...], returned=(0, 1)),
    AtenCalls("linalg_solve_ex", SOLVE_EX_FAST_PATH, [True, ...], returned=(0, 1), by_columns=(0,)),
)
