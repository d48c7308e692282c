"""Every operation's gradient, against the exact one.

An error is judged in units of what rounding explains (`accuracy.measures.amplification`). Real and
complex matrices, single ones and batches are separate checks, so that the report says which goes
wrong: a forgotten conjugate shows in the complex one only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from strategies import linalg
from strategies.accuracy import classes, measures
from strategies.accuracy.certified import Certified
from strategies.accuracy.reference import gradient
from strategies.errors import LinAlgError, UnsupportedError
from strategies.interface import Strategy
from strategies.measuring import Case, backward_of, forward
from strategies.measuring.case import SQUARE_ONLY, WITH_RIGHT_HAND_SIDE
from strategies.testing.checks import (
    Check,
    NotApplicableError,
    Violation,
    close,
    device,
    numbered,
    require,
)

__all__ = ["CHECKS", "OPERATIONS", "ratio_of"]

OPERATIONS = ("lu_factor", "pinv", "lstsq", "solve", "inv", "det", "slogdet")
REAL = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)


def ratio_of(case: Case, strategy: Strategy) -> float:
    """The largest gradient error of a case, in units of what rounding explains.

    Infinite where a gradient is not finite, or is not zero where the exact one is.
    """
    exact, amplification = _judge(case)
    computed = backward_of(case, strategy)()
    for gradient_, tensor in zip(computed, case.inputs(), strict=True):
        require(
            gradient_.dtype == tensor.dtype and gradient_.shape == tensor.shape,
            f"{case.label}: a gradient is {gradient_.dtype} of shape {tuple(gradient_.shape)}, "
            f"its input {tensor.dtype} of shape {tuple(tensor.shape)}",
        )
    errors = exact.relative_errors(computed)
    return max(measures.error_ratio(error, amplification, case.dtype) for error in errors)


@functools.lru_cache(maxsize=512)
def _judge(case: Case) -> tuple[Certified, Tensor]:
    """The exact gradients, computed before any strategy had its hands on the inputs."""
    inputs = case.inputs()
    cotangents = case.cotangents(forward(case, "native"))
    exact = gradient(case.operation, inputs, cotangents, rank=case.known_rank)
    return exact, measures.amplification(case.operation, inputs, cotangents, rank=case.known_rank)


def _shapes(operation: str) -> tuple[tuple[int, int], ...]:
    return ((5, 5),) if operation in SQUARE_ONLY else ((5, 5), (7, 4), (4, 7))


def _require_exact(case: Case, strategy: Strategy) -> None:
    ratio = ratio_of(case, strategy)
    limit = measures.PASS_BELOW
    require(
        ratio < limit,
        f"{case.label}: the error is {ratio:.1e} times what rounding explains, the limit {limit:g}",
    )


def _gradient_check(
    operation: str, dtypes: tuple[torch.dtype, ...], batch: int
) -> Callable[[Strategy], None]:
    def run(strategy: Strategy) -> None:
        for dtype in dtypes:
            for shape in _shapes(operation):
                rhs = 2 if operation in WITH_RIGHT_HAND_SIDE else 1
                _require_exact(Case(operation, shape, batch, dtype, device(), rhs=rhs), strategy)

    return run


def _gallery_check(operation: str) -> Callable[[Strategy], None]:
    """A well-posed but not harmless matrix may cost the digits that the documented class allows."""

    def run(strategy: Strategy) -> None:
        for dtype in REAL:
            for matrix in ("random_condition_root", "graded_rows", "wilkinson_growth"):
                for shape in _shapes(operation):
                    case = Case(operation, shape, 0, dtype, device(), matrix=matrix)
                    ratio = functools.partial(ratio_of, case, strategy)
                    classes.judge(strategy.name, operation, case.inputs()[0], ratio)

    return run


def _deficient_check(operation: str) -> Callable[[Strategy], None]:
    """The gradient along perturbations that keep the rank, or a refusal that says so."""

    def run(strategy: Strategy) -> None:
        of_a_factor = operation in ("pinv", "lstsq")
        if strategy.forward_is_differentiable and not of_a_factor:
            raise NotApplicableError("PyTorch's own operation, which divides by the zero pivots")
        for dtype in (torch.float64, torch.complex64):
            for shape in _shapes(operation):
                # The gradient of det is zero, and has no relative error, from corank 2 on.
                what: dict[str, Any] = (
                    {"rank": shape[0] - 1} if operation == "det" else {"matrix": "half_rank"}
                )
                case = Case(operation, shape, 0, dtype, device(), **what)
                if of_a_factor and strategy.requires_full_rank:
                    _require_refusal(case, strategy)
                else:
                    _require_exact(case, strategy)

    return run


def _require_refusal(case: Case, strategy: Strategy) -> None:
    try:
        forward(case, strategy)
    except LinAlgError as refusal:
        require(
            strategy.name in str(refusal),
            f"{case.label}: refused, but the message does not name '{strategy.name}': {refusal}",
        )
        return
    raise Violation(f"{case.label}: no LinAlgError, though the strategy needs full rank")


def _check_singular_refusal(strategy: Strategy) -> None:
    """A matrix with a column of zeros has no inverse: an error, never Inf."""
    for dtype in (torch.float32, torch.complex128):
        for column in (0, 3):
            A = numbered((4, 4), dtype, 6)
            A[:, column] = 0
            for name, arguments in (("inv", (A,)), ("solve", (A, A[:, 1:2]))):
                what = f"{name} of a matrix whose column {column} is zero"
                try:
                    getattr(linalg, name)(*arguments, strategy=strategy)
                except LinAlgError as error:
                    named = strategy.forward_is_differentiable or strategy.name in str(error)
                    require(named, f"{what}: the error does not name the strategy: {error}")
                else:
                    raise Violation(f"{what} gave a result where LinAlgError is due")


def _check_rhs_alone(strategy: Strategy) -> None:
    """The gradient of B is the same when that of A is not asked for."""
    for operation in ("lstsq", "solve"):
        case = Case(operation, (5, 5), 2, device=device(), rhs=2)
        A, B = (tensor.detach().clone() for tensor in case.inputs())
        gradients = []
        for needs_matrix in (True, False):
            leaves = A.clone().requires_grad_(needs_matrix), B.clone().requires_grad_()
            result = getattr(linalg, operation)(*leaves, strategy=strategy)
            X = result if isinstance(result, Tensor) else result.solution
            gradients.append(torch.autograd.grad(X, leaves[1], numbered(X.shape, X.dtype, 7))[0])
        close(gradients[1], gradients[0], f"{operation}: the gradient of B without that of A")


def _check_empty(strategy: Strategy) -> None:
    """No rows, no columns, no matrices: shapes follow, gradients are zeros of the input's shape."""
    for shape in ((0, 0), (3, 0), (0, 3), (0, 3, 3), (2, 0, 0), (0, 4, 2)):
        for operation in OPERATIONS:
            if operation in SQUARE_ONLY and shape[-1] != shape[-2]:
                continue
            A = torch.zeros(shape, device=device(), requires_grad=True)
            B = torch.zeros(*shape[:-1], 2, device=device(), requires_grad=True)
            takes_rhs = operation in WITH_RIGHT_HAND_SIDE
            leaves = (A, B) if takes_rhs else (A,)
            result = getattr(linalg, operation)(*leaves, strategy=strategy)
            output = result if isinstance(result, Tensor) else result[operation == "slogdet"]
            expected = _empty_shape(operation, shape)
            what = f"{operation} of shape {shape}"
            require(
                tuple(output.shape) == expected,
                f"{what}: result of shape {tuple(output.shape)}, not {expected}",
            )
            found = torch.autograd.grad(output.sum(), leaves, allow_unused=True)
            for value, leaf in zip(found, leaves, strict=True):
                require(
                    value is None or (value.shape == leaf.shape and not value.any()),
                    f"{what}: the gradient is not zeros of shape {tuple(leaf.shape)}",
                )


def _empty_shape(operation: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    *batch, m, n = shape
    matrix = {"lu_factor": (m, n), "det": (), "slogdet": ()}.get(operation, (n, m))
    return (*batch, *((n, 2) if operation in WITH_RIGHT_HAND_SIDE else matrix))


def _check_driver_refusal(strategy: Strategy) -> None:
    """LAPACK's drivers are PyTorch's; asking another strategy for one is refused, not ignored."""
    if strategy.forward_is_differentiable:
        raise NotApplicableError("has PyTorch's drivers")
    A = numbered((4, 2), torch.float64, 8)
    try:
        linalg.lstsq(A, A, driver="gels", strategy=strategy)
    except UnsupportedError:
        return
    raise Violation("lstsq(driver='gels') was accepted; UnsupportedError is due")


CHECKS: tuple[Check, ...] = (
    *(Check(f"gradient of {name}", _gradient_check(name, REAL, 0)) for name in OPERATIONS),
    *(
        Check(f"complex gradient of {name}", _gradient_check(name, COMPLEX, 0))
        for name in OPERATIONS
    ),
    *(
        Check(f"batched gradient of {name}", _gradient_check(name, (torch.float64,), 3))
        for name in OPERATIONS
    ),
    *(Check(f"accuracy class of {name}", _gallery_check(name)) for name in OPERATIONS),
    *(
        Check(f"rank-deficient {name}", _deficient_check(name))
        for name in ("lu", "pinv", "lstsq", "det")
    ),
    Check("singular matrices refused", _check_singular_refusal),
    Check("gradient of B alone", _check_rhs_alone),
    Check("empty matrices and batches", _check_empty),
    Check("drivers refused", _check_driver_refusal),
)
