"""Every operation's gradient, against the exact one.

An error is judged in units of what rounding explains (`strategies.accuracy.measures`). Real and
complex matrices, single ones and batches are separate checks, so that the report says which goes
wrong: a forgotten conjugate shows in the complex one only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy import measures
from strategies.accuracy.certified import Certified
from strategies.accuracy.judgement import judge
from strategies.accuracy.reference import gradient
from strategies.errors import LinAlgError
from strategies.interface import Strategy
from strategies.measuring import Case, backward_of, forward
from strategies.measuring.errors import checked_problem
from strategies.operations import Operation
from strategies.testing.checks import (
    Check,
    NotApplicableError,
    Violation,
    close,
    device,
    numbered,
    require,
)

_REAL = (torch.float32, torch.float64)
_COMPLEX = (torch.complex64, torch.complex128)


def ratio_of(case: Case, strategy: Strategy) -> float:
    """The largest gradient error of a case, in units of what rounding explains.

    Infinite where a gradient is not finite, or is not zero where the exact one is.
    """
    exact, amplification = _known(case)
    computed = backward_of(case, strategy)()
    for found, tensor in zip(computed, case.inputs(), strict=True):
        require(
            found.dtype == tensor.dtype and found.shape == tensor.shape,
            f"{case}: a gradient is {found.dtype} of shape {tuple(found.shape)}, "
            f"its input {tensor.dtype} of shape {tuple(tensor.shape)}",
        )
    errors = exact.relative_errors(computed)
    return max(measures.error_ratio(error, amplification, case.dtype) for error in errors)


@lru_cache(maxsize=512)
def _known(case: Case) -> tuple[Certified, Tensor]:
    """The exact gradients and their amplification, computed before any strategy has the inputs."""
    problem = checked_problem(case)
    exact = gradient(case.operation, *problem, rank=case.known_rank)
    return exact, measures.amplification(case.operation, *problem, rank=case.known_rank)


def gradients(
    operation: Operation,
    strategy: Strategy,
    leaves: tuple[Tensor, ...],
    layout: Callable[[Tensor], Tensor] = lambda cotangent: cotangent,
) -> tuple[Tensor, ...]:
    """The gradients of those leaves that require one; cotangents of batches are laid out so."""
    outputs = operation.outputs(operation.function(*leaves, strategy=strategy))
    cotangents = [numbered(tuple(out.shape), out.dtype, 7) for out in outputs]
    cotangents = [layout(each) if each.ndim > 2 else each for each in cotangents]
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    return torch.autograd.grad(outputs, asked, cotangents, materialize_grads=True)


def _cases(
    operation: Operation, dtypes: tuple[torch.dtype, ...], batch: int = 0, matrix: str | None = None
) -> Iterator[Case]:
    shapes = [(5, 5)] if operation.square else [(5, 5), (7, 4), (4, 7)]
    rhs = operation.arity  # two columns, or the one that stands for none
    for dtype in dtypes:
        for shape in shapes:
            yield Case(operation.name, shape, batch, dtype, device(), rhs=rhs, matrix=matrix)


def _require_exact(case: Case, strategy: Strategy) -> None:
    ratio, limit = ratio_of(case, strategy), measures.PASS_BELOW
    require(
        ratio < limit,
        f"{case}: the error is {ratio:.1e} times what rounding explains, the limit {limit:g}",
    )


def _require_refusal(compute: Callable[[], object], what: str, strategy: Strategy) -> None:
    try:
        compute()
    except LinAlgError as refusal:
        is_named = strategy.name in str(refusal)
        require(is_named, f"{what}: refused, but not in the name of '{strategy.name}': {refusal}")
    else:
        raise Violation(f"{what}: gave a result where LinAlgError is due")


def _check_gradient(
    operation: Operation, dtypes: tuple[torch.dtype, ...], batch: int, strategy: Strategy
) -> None:
    for case in _cases(operation, dtypes, batch):
        _require_exact(case, strategy)


def _check_class(operation: Operation, strategy: Strategy) -> None:
    """A well-posed but not harmless matrix may cost the digits that the strategy's class allows."""
    for matrix in ("random_condition_root", "graded_rows", "wilkinson_growth"):
        for case in _cases(operation, _REAL, matrix=matrix):
            ratio = partial(ratio_of, case, strategy)
            judge(strategy, operation.name, case.inputs()[0], ratio)


def _check_deficient(operation: Operation, strategy: Strategy) -> None:
    """The gradient along perturbations that keep the rank, or a refusal that says so."""
    if strategy.forward_is_differentiable and not operation.truncates:
        raise NotApplicableError("PyTorch's own operation, which divides by the zero pivots")
    refuses = strategy.requires_full_rank and operation.truncates
    for matrix in ("half_rank", "last_column_zero"):
        for case in _cases(operation, (torch.float64, torch.complex64), matrix=matrix):
            try:
                forward(case, "native")
            except RuntimeError:
                continue  # there is no result, whatever the strategy
            if refuses and case.known_rank != min(case.shape):
                _require_refusal(partial(forward, case, strategy), str(case), strategy)
            else:
                _require_exact(case, strategy)


def _check_singular(operation: Operation, strategy: Strategy) -> None:
    """A matrix with a column of zeros has no inverse: an error, never Inf."""
    if strategy.forward_is_differentiable:
        raise NotApplicableError("PyTorch's own operation, which words its own errors")
    for dtype in (torch.float32, torch.complex128):
        for column in (0, 3):
            A, B = numbered((4, 4), dtype, 6), numbered((4, 2), dtype, 8)
            A[:, column] = 0
            leaves = tuple(leaf.requires_grad_() for leaf in (A, B)[: operation.arity])
            what = f"{operation.name} of a matrix whose column {column} is zero"
            compute = partial(gradients, operation, strategy, leaves)
            _require_refusal(compute, what, strategy)


def _check_rhs_alone(operation: Operation, strategy: Strategy) -> None:
    """The gradient of B is the same when that of A is not asked for."""
    for case in _cases(operation, (torch.float64,), batch=2):
        A, B = (tensor.detach().clone() for tensor in case.inputs())
        both = gradients(operation, strategy, (A.requires_grad_(), B.requires_grad_()))
        (alone,) = gradients(operation, strategy, (A.detach(), B))
        close(alone, both[1], f"{case}: the gradient of B without that of A")


def _check_empty(operation: Operation, strategy: Strategy) -> None:
    """No rows, no columns, no matrices: shapes follow, gradients are zeros of the input's shape."""
    for shape in ((0, 0), (3, 0), (0, 3), (0, 3, 3), (2, 0, 0), (0, 4, 2)):
        if operation.square and shape[-1] != shape[-2]:
            continue
        A, B = (torch.zeros(size, device=device()) for size in (shape, (*shape[:-1], 2)))
        leaves = tuple(leaf.requires_grad_() for leaf in (A, B)[: operation.arity])
        outputs = operation.outputs(operation.function(*leaves, strategy=strategy))
        expected = operation.output_shapes(*(tuple(leaf.shape) for leaf in leaves))
        what = f"{operation.name} of shape {shape}"
        for output, size in zip(reversed(outputs), reversed(expected), strict=False):
            found_size = tuple(output.shape)
            require(found_size == size, f"{what}: a result of shape {found_size}, not {size}")
        for value, leaf in zip(gradients(operation, strategy, leaves), leaves, strict=True):
            require(
                value.shape == leaf.shape and not value.any(),
                f"{what}: the gradient is not zeros of shape {tuple(leaf.shape)}",
            )


def checks() -> Iterator[Check]:
    """The checks of every operation that there is."""
    for operation in map(operations.get, operations.names()):
        of_each: dict[str, Callable[[Strategy], None]] = {
            "gradient of": partial(_check_gradient, operation, _REAL, 0),
            "complex gradient of": partial(_check_gradient, operation, _COMPLEX, 0),
            "batched gradient of": partial(_check_gradient, operation, (torch.float64,), 3),
            "accuracy class of": partial(_check_class, operation),
            "empty matrices in": partial(_check_empty, operation),
        }
        if operation.needs_full_rank:
            of_each["singular matrices in"] = partial(_check_singular, operation)
        else:
            of_each["rank-deficient"] = partial(_check_deficient, operation)
        if operation.arity > 1:
            of_each["gradient of B alone in"] = partial(_check_rhs_alone, operation)
        for what, run in of_each.items():
            yield Check(f"{what} {operation.name}", run)
