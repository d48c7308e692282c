"""What stands for the Cholesky family where tensors have no values: see `strategies.operations.traced`."""

import torch
from torch import Tensor

from strategies.autograd.choice import StrategyChoice, are_matrices, name_of
from strategies.autograd.operators import Operator
from strategies.operations.results import CholeskyExResult
from strategies.operations.right_hand_sides import fit, folded


def cholesky(A: Tensor, *, upper: bool = False, strategy: StrategyChoice = "auto") -> Tensor:
    """`strategies.linalg.cholesky` by shapes."""
    if not are_matrices(A, square=True):
        return torch.linalg.cholesky(A, upper=upper)
    return cholesky_ex(A, upper=upper, check_errors=True, strategy=strategy).L


def cholesky_ex(
    A: Tensor,
    *,
    upper: bool = False,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> CholeskyExResult:
    """`strategies.linalg.cholesky_ex` by shapes."""
    if not are_matrices(A, square=True):
        return CholeskyExResult(
            *torch.linalg.cholesky_ex(A, upper=upper, check_errors=check_errors)
        )
    L, info = _CHOLESKY_EX(A.mT if upper else A, check_errors, name_of(strategy))
    return CholeskyExResult(L.mT if upper else L, info)


_CHOLESKY_EX = Operator(
    "cholesky_ex", ["A"], "bool check_errors", outputs=2, measured_as="cholesky", by_columns=(0,)
)


def cholesky_solve(
    B: Tensor, L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    """`strategies.linalg.cholesky_solve` by shapes."""
    if not fit(L, B, left=True):
        return torch.cholesky_solve(B, L, upper=upper)
    columns, restored = folded(L, B)
    return restored(_CHOLESKY_SOLVE(L.mH if upper else L, columns, name_of(strategy))[0])


_CHOLESKY_SOLVE = Operator(
    "cholesky_solve",
    ["L", "B"],
    fake=lambda L, B: (B.new_empty(torch.cholesky_solve(B, L).shape),),
    by_columns=(0,),
)


def cholesky_inverse(
    L: Tensor, upper: bool = False, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    """`strategies.linalg.cholesky_inverse` by shapes."""
    if not are_matrices(L, square=True):
        return torch.cholesky_inverse(L, upper=upper)
    return _CHOLESKY_INVERSE(L.mH if upper else L, name_of(strategy))[0]


_CHOLESKY_INVERSE = Operator("cholesky_inverse", ["L"], by_columns=(0,))
