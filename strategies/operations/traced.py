"""The functions of this package as calls of operators (`strategies.operations.traceable`).

Each does by shapes what the function of its name does by values. Calls that are not for a strategy are left
to PyTorch, whose errors say why.
"""

from collections.abc import Callable
from types import NoneType
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from strategies.autograd.choice import StrategyChoice, are_matrices, are_of_kind, name_of
from strategies.autograd.operators import EAGER, Operator
from strategies.autograd.rule import Tensors
from strategies.formulas.hermitian import mirrored
from strategies.operations.results import (
    LstsqResult,
    LUFactorExResult,
    LUFactorResult,
    LUResult,
    SlogdetResult,
)
from strategies.operations.right_hand_sides import fit, fit_rows, folded, is_vector
from strategies.operations.traceable import traceable_by
from strategies.policy import BASELINE
from strategies.strategy import Strategy, Tolerance

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def traceable(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, and where values are not to be read, what stands for it here by its name.

    Example:
        >>> from strategies import linalg
        >>> linalg.pinv(torch.empty(5, 3, device="meta")).shape
        torch.Size([3, 5])
    """
    return traceable_by(globals()[f"_{function.__name__}"])(function)


# inv


def _inv(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    if not are_matrices(A, square=True):
        return torch.linalg.inv(A)
    return _INV(A, name_of(strategy))[0]


_INV = Operator("inv", ["A"], any_rank=True, by_columns=(0,))


# solve


def _solve(A: Tensor, B: Tensor, *, left: bool = True, strategy: StrategyChoice = "auto") -> Tensor:
    if not (are_matrices(A, square=True) and are_of_kind(A, B)):
        return torch.linalg.solve(A, B, left=left)
    if is_vector(A, B) or not fit(A, B, left):
        if left:
            return _SOLVE(A, B, name_of(strategy))[0]
        return torch.linalg.solve(A, B, left=False)
    if not left:
        return _solve(A.mT, B.mT, strategy=strategy).mT
    columns, restored = folded(A, B)
    return restored(_SOLVE(A, columns, name_of(strategy))[0])


_SOLVE = Operator("solve", ["A", "B"], any_rank=True, takes_vectors=True)


# det and slogdet


def _det(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    if not are_matrices(A, square=True):
        return torch.linalg.det(A)
    return _DET(A, name_of(strategy))[0]


def _slogdet(A: Tensor, *, strategy: StrategyChoice = "auto") -> SlogdetResult:
    if not are_matrices(A, square=True):
        return SlogdetResult(*torch.linalg.slogdet(A))
    return SlogdetResult(*_SLOGDET(A, name_of(strategy)))


_DET = Operator("det", ["A"])
_SLOGDET = Operator("slogdet", ["A"], outputs=2, differentiable=2, measured_as="det")


# LU, of which there is one operator


def _lu_factor(
    A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto"
) -> LUFactorResult:
    if not are_matrices(A):
        return LUFactorResult(*torch.linalg.lu_factor(A, pivot=pivot))
    return LUFactorResult(*_LU_FACTOR_EX(A, pivot, True, name_of(strategy))[:2])


def _lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    strategy: StrategyChoice = "auto",
) -> LUFactorExResult:
    if not are_matrices(A):
        return LUFactorExResult(
            *torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        )
    return LUFactorExResult(*_LU_FACTOR_EX(A, pivot, check_errors, name_of(strategy)))


def _lu(A: Tensor, *, pivot: bool = True, strategy: StrategyChoice = "auto") -> LUResult:
    if not are_matrices(A):
        return LUResult(*torch.linalg.lu(A, pivot=pivot))
    LU, pivots, _ = _LU_FACTOR_EX(A, pivot, False, name_of(strategy))
    return LUResult(*torch.lu_unpack(LU, pivots, unpack_pivots=pivot))


_LU_FACTOR_EX = Operator(
    "lu_factor_ex",
    ["A"],
    "bool pivot, bool check_errors",
    outputs=3,
    measured_as="lu_factor",
    by_columns=(0,),
)


# pinv


def _pinv(
    A: Tensor,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    hermitian: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    are_tolerances = all(isinstance(each, _TOLERANCES) for each in (atol, rtol))
    if not (are_tolerances and are_matrices(A, square=hermitian)):
        return torch.linalg.pinv(A, atol=atol, rtol=rtol, hermitian=hermitian)
    refuse_gradients_of(atol=atol, rtol=rtol)
    if rtol is None and isinstance(atol, float) and atol > 0:
        rtol = 0.0  # the default beside atol
    if hermitian and name_of(strategy) != BASELINE:
        A, hermitian = mirrored(A), False
    tolerances = (part for tolerance in (atol, rtol) for part in _number_or_tensor(tolerance))
    return _PINV(A, *tolerances, hermitian, name_of(strategy))[0]


_TOLERANCES = float, int, Tensor, NoneType


def refuse_gradients_of(**tolerances: Tolerance) -> None:
    """Raises as PyTorch does where a gradient of a tolerance is asked for: there is none."""
    for name, tolerance in tolerances.items():
        if isinstance(tolerance, Tensor) and tolerance.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"The function 'linalg_pinv' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True."
            )


def _number_or_tensor(tolerance: Tolerance) -> tuple[float | None, Tensor | None]:
    return (None, tolerance) if isinstance(tolerance, Tensor) else (tolerance, None)


def _pinv_eagerly(
    A: Tensor,
    atol: float | None,
    atols: Tensor | None,
    rtol: float | None,
    rtols: Tensor | None,
    hermitian: bool,
    strategy: Strategy,
) -> Tensors:
    pinv: Tensor = EAGER["pinv"](
        A,
        atol=atol if atols is None else atols,
        rtol=rtol if rtols is None else rtols,
        hermitian=hermitian,
        strategy=strategy,
    )
    return (pinv,)


def _fake_pinv(A: Tensor, *tolerances: object) -> Tensors:
    *batch, m, n = A.shape
    shapes = [each.shape for each in tolerances if isinstance(each, Tensor)]
    if shapes and A.numel():
        batch = [*torch.broadcast_shapes(tuple(batch), *shapes)]
    return (A.new_empty(*batch, n, m),)


_PINV = Operator(
    "pinv",
    ["A"],
    "float? atol, Tensor? atols, float? rtol, Tensor? rtols, bool hermitian",
    compute=_pinv_eagerly,
    fake=_fake_pinv,
    any_rank=True,
)


# lstsq


def _lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    strategy: StrategyChoice = "auto",
) -> LstsqResult:
    """Residuals are there wherever m > n, singular values nowhere: ranks are not known here."""
    is_number = rcond is None or isinstance(rcond, float | int)
    if not (is_number and are_matrices(A) and are_of_kind(A, B) and fit_rows(A, B)):
        return LstsqResult(*torch.linalg.lstsq(A, B, rcond=rcond, driver=driver))
    if driver is not None and strategy == "auto":
        strategy = BASELINE
    X, rank = _LSTSQ(A, B, rcond, driver, name_of(strategy))
    none = X.new_empty(0, dtype=X.real.dtype)
    if A.shape[-2] <= A.shape[-1]:
        return LstsqResult(X, none, rank, none)
    is_vector = B.ndim < A.ndim
    rhs, columns = (each.unsqueeze(-1) if is_vector else each for each in (B, X))
    return LstsqResult(X, (rhs - A @ columns).abs().square().sum(-2), rank, none)


def _lstsq_eagerly(
    A: Tensor, B: Tensor, rcond: float | None, driver: str | None, strategy: Strategy
) -> Tensors:
    X, _, rank, _ = EAGER["lstsq"](A, B, rcond, driver=driver, strategy=strategy)
    if rank.shape != A.shape[:-2]:  # a driver of PyTorch's for matrices of full rank
        rank = rank.new_full(A.shape[:-2], min(A.shape[-2:]))
    return X, rank


def _fake_lstsq(A: Tensor, B: Tensor, _rcond: float | None, _driver: str | None) -> Tensors:
    if not fit_rows(A, B):
        raise RuntimeError(
            f"linalg.lstsq: B of shape {tuple(B.shape)} does not fit A of shape {tuple(A.shape)}"
        )
    own, n = A.shape[:-2], A.shape[-1]
    rank = A.new_empty(own, dtype=torch.int64)
    if B.ndim < A.ndim:
        return B.new_empty(*own, n), rank
    batch = torch.broadcast_shapes(own, B.shape[:-2])
    return B.new_empty(*batch, n, B.shape[-1]), rank


_LSTSQ = Operator(
    "lstsq",
    ["A", "B"],
    "float? rcond, str? driver",
    compute=_lstsq_eagerly,
    fake=_fake_lstsq,
    outputs=2,
    any_rank=True,
    takes_vectors=True,
)
