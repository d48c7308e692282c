"""`inv_ex` and `solve_ex`: a singular matrix is reported in `info`, not raised.

The fast path reports it. What a strategy refuses is left to PyTorch, with the rest of its batch.
"""

import dataclasses

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
from strategies.operations.inv import INV_FAST_PATH
from strategies.operations.results import InvExResult, SolveExResult
from strategies.operations.solve import SOLVE_FAST_PATH, solve, solve_workspace
from strategies.operations.traceable import traceable_by

__all__ = ["InvExResult", "SolveExResult", "inv_ex", "solve_ex"]

RECORDS = ()


def _traced_inv_ex(
    A: Tensor, *, check_errors: bool = False, strategy: StrategyChoice = "auto"
) -> InvExResult:
    if not are_matrices(A, square=True):
        return InvExResult._make(torch.linalg.inv_ex(A, check_errors=check_errors))
    return InvExResult(*_INV_OPERATOR(A, check_errors, name_of(strategy)))


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
    fast_path = _CHECKED_INV if check_errors else _INV
    if (outputs := fast_path(strategy, A)) is not None:
        return InvExResult._make(outputs)
    if are_matrices(A, square=True):
        try:
            candidates = choose(strategy, "inv", A, square=True, any_rank=True)
            return InvExResult(_INV.general(candidates, A)[0], _none(A))
        except LinAlgError:
            pass
    return InvExResult._make(torch.linalg.inv_ex(A, check_errors=check_errors))


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
    return SolveExResult(*_SOLVE_OPERATOR(A, B, left, check_errors, name_of(strategy)))


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
    fast_path = _CHECKED_SOLVE if check_errors else _SOLVE
    if left and (outputs := fast_path(strategy, A, B)) is not None:
        return SolveExResult._make(outputs)
    if are_matrices(A, square=True) and are_of_kind(A, B):
        try:
            return SolveExResult(solve(A, B, left=left, strategy=strategy), _none(A))
        except LinAlgError:
            pass
    return SolveExResult._make(torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors))


def _none(A: Tensor) -> Tensor:
    """The info of matrices none of which is singular."""
    return torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)


_INV = dataclasses.replace(INV_FAST_PATH, operation="inv_ex", unread_outputs=(1,))
_SOLVE = dataclasses.replace(SOLVE_FAST_PATH, operation="solve_ex", unread_outputs=(1,))
_CHECKED_INV, _CHECKED_SOLVE = (
    dataclasses.replace(each, reports=True) for each in (INV_FAST_PATH, SOLVE_FAST_PATH)
)

_INV_OPERATOR = Operator(
    "inv_ex",
    ["A"],
    "bool check_errors",
    outputs=2,
    measured_as="inv",
    any_rank=True,
    fast_paths=[(_INV, [False]), (_CHECKED_INV, [True])],
)
_SOLVE_OPERATOR = Operator(
    "solve_ex",
    ["A", "B"],
    "bool left, bool check_errors",
    outputs=2,
    measured_as="solve",
    any_rank=True,
    takes_vectors=True,
    fast_paths=[(_SOLVE, [True, False]), (_CHECKED_SOLVE, [True, True])],
    workspace=solve_workspace,
)

ATEN = (
    AtenCalls("linalg_inv_ex", _INV, [False], returned=(0, 1)),
    AtenCalls("linalg_inv_ex", _CHECKED_INV, [True], returned=(0, 1)),
    AtenCalls("linalg_solve_ex", _SOLVE, [True, False], returned=(0, 1), by_columns=(0,)),
    AtenCalls("linalg_solve_ex", _CHECKED_SOLVE, [True, True], returned=(0, 1), by_columns=(0,)),
)
