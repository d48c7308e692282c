"""Every operation's gradient, against the exact one.

An error is judged in units of what rounding explains (`strategies.accuracy.measures`). Real and
complex matrices, single ones and batches are separate checks, so that the report says which goes
wrong: a forgotten conjugate shows in the complex one only.
"""

import itertools
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vector_norm as norm

from strategies import operations, registry
from strategies.accuracy import measures
from strategies.accuracy.certified import Certified
from strategies.accuracy.measures import judge
from strategies.accuracy.reference import gradient
from strategies.measuring import Case, backward_of, forward
from strategies.measuring.errors import checked_problem
from strategies.operations import Operation
from strategies.policy import BASELINE
from strategies.strategy import Strategy
from strategies.testing.checks import (
    NotApplicableError,
    Shaped,
    check_operations,
    close,
    device,
    require,
    require_refusal,
    shaped,
    skip_native,
)
from strategies.testing.problems import doubled, recorded, solved
from strategies.testing.spy import spy_on

_REAL = (torch.float32, torch.float64)
_COMPLEX = (torch.complex64, torch.complex128)

_MANY = 40
"""Right-hand sides: more than a matrix has rows."""


def ratio_of(case: Case, strategy: Strategy) -> float:
    """The largest gradient error of a case, in units of what rounding explains.

    Infinite where a gradient is not finite, or is not zero where the exact one is.
    """
    exact, amplification = _known(case)
    computed = backward_of(case, strategy)()
    for found, tensor in zip(computed, case.inputs(), strict=True):
        is_alike = found.dtype == tensor.dtype and found.shape == tensor.shape
        what = f"a gradient is {found.dtype} of shape {tuple(found.shape)}"
        require(is_alike, f"{what}, its input {tensor.dtype} of shape {tuple(tensor.shape)}")
    errors = exact.relative_errors(operations.get(case.operation).defined(computed))
    return max(measures.error_ratio(error, amplification, case.dtype) for error in errors)


@lru_cache(maxsize=512)
def _known(case: Case) -> tuple[Certified, Tensor]:
    """The exact gradients and their amplification, computed before any strategy has the inputs."""
    problem = checked_problem(case)
    exact = gradient(case.operation, *problem, rank=case.known_rank)
    return exact, measures.amplification(case.operation, *problem, rank=case.known_rank)


def _case(operation: Operation, shape: tuple[int, int], dtype: torch.dtype, **more: Any) -> Case:
    # By default two right-hand sides, or the one that stands for none.
    more = {"rhs": operation.arity, **more}
    return Case(operation.name, shape, dtype=dtype, device=device(), **more)


def _cases(operation: Operation, *dtypes: torch.dtype, **more: Any) -> Iterator[Case]:
    shapes = [(5, 5)] if operation.square else [(5, 5), (7, 4), (4, 7)]
    for dtype, shape in itertools.product(dtypes, shapes):
        yield _case(operation, shape, dtype, **more)


def _require_exact(strategy: Strategy, case: Case) -> None:
    ratio, limit = ratio_of(case, strategy), measures.PASS_BELOW
    found = f"the error is {ratio:.1e} times what rounding explains, the limit {limit:g}"
    require(ratio < limit, f"the gradient against the exact one: {found}")


def _of_batches(
    operation: Operation, dtypes: tuple[torch.dtype, ...], batches: list[int]
) -> Iterator[Case]:
    for batch in batches:
        yield from _cases(operation, *dtypes, batch=batch)
        if operation.arity > 1 and not batch:
            yield _case(operation, (5, 5), dtypes[-1], rhs=_MANY)


for _what, _dtypes, _batches in (
    ("gradient of", _REAL, [0]),
    ("complex gradient of", _COMPLEX, [0]),
    ("batched gradient of", (torch.float64,), [3, 1]),
):
    check_operations(_what, partial(_of_batches, dtypes=_dtypes, batches=_batches))(_require_exact)


def _ill_conditioned(operation: Operation) -> Iterator[Case]:
    for matrix in ("random_condition_root", "graded_rows", "wilkinson_growth"):
        yield from _cases(operation, *_REAL, matrix=matrix)
    if not operation.square:
        for shape, dtype in itertools.product(((60, 3), (3, 60), (300, 2)), _REAL):
            yield _case(operation, shape, dtype, matrix="random_condition_root")


@check_operations("accuracy class of", _ill_conditioned)
def _check_class(strategy: Strategy, case: Case) -> None:
    """A well-posed but not harmless matrix may cost the digits that the strategy's class allows."""
    judge(strategy, case.operation, case.inputs()[0], partial(ratio_of, case, strategy))


def _larger(operation: Operation) -> Iterator[Case]:
    shapes = [(40, 40), (80, 80)]
    if not operation.square:
        shapes += [(40, 35), (35, 40), (100, 70), (300, 20), (20, 300)]
    for shape, dtype in itertools.product(shapes, (torch.float32, torch.complex64)):
        yield _case(operation, shape, dtype, log10_cond=3.0)


@check_operations("accuracy at size of", _larger)
def _check_class_at_size(strategy: Strategy, case: Case) -> None:
    """The same for larger matrices: single precision against the gradients in double."""
    operation, inputs = operations.get(case.operation), case.inputs()
    cotangents = case.cotangents(forward(case, BASELINE))
    expected = _in_double(case)
    amplification = measures.amplification(operation.name, inputs, cotangents)

    def ratio() -> float:
        found = operation.defined(backward_of(case, strategy)())
        pairs = zip(found, expected, strict=True)
        errors = (float(norm(doubled(a) - b) / norm(b)) for a, b in pairs)
        return max(measures.error_ratio(e, amplification, case.dtype) for e in errors)

    judge(strategy, operation.name, inputs[0], ratio)


@lru_cache(maxsize=512)
def _in_double(case: Case) -> tuple[Tensor, ...]:
    cotangents = case.cotangents(forward(case, BASELINE))
    wide = (tuple(map(doubled, tensors)) for tensors in (case.inputs(), cotangents))
    return solved(registry.get("triangular_solve"), operations.get(case.operation), *wide)[1]


def _deficient(operation: Operation) -> Iterator[Case]:
    for matrix in ("half_rank", "last_column_zero"):
        yield from _cases(operation, torch.float64, torch.complex64, matrix=matrix)


@check_operations("rank-deficient", _deficient, lambda operation: not operation.needs_full_rank)
def _check_deficient(strategy: Strategy, case: Case) -> None:
    """The gradient along perturbations that keep the rank, or a refusal that says so."""
    operation = operations.get(case.operation)
    if not operation.truncates:
        skip_native(strategy, "which divides by the zero pivots")
    try:
        forward(case, BASELINE)
    except RuntimeError:
        return  # there is no result, whatever the strategy
    is_deficient = operation.truncates and case.known_rank != min(case.shape)
    if strategy.requires_full_rank and is_deficient:
        require_refusal(strategy, partial(forward, case, strategy))
    else:
        _require_exact(strategy, case)


def _with_rhs(operation: Operation) -> Iterator[Case]:
    for batch, rhs in itertools.product((0, 2), (1, 2, _MANY)):
        of = partial(_cases, operation, torch.float64, batch=batch, rhs=rhs)
        yield from of(torch.complex64)
        if operation.truncates:
            yield from of(matrix="half_rank")


@check_operations("gradient of B alone in", _with_rhs, lambda operation: operation.arity > 1)
def _check_rhs_alone(strategy: Strategy, case: Case) -> None:
    """The gradient of B is the same when that of A is not asked for, which is then not computed."""
    # On CUDA PyTorch's own least squares need full rank, too.
    is_of_cuda = strategy.forward_is_differentiable and torch.device(device()).type == "cuda"
    if case.matrix == "half_rank" and (strategy.requires_full_rank or is_of_cuda):
        raise NotApplicableError("needs full rank")
    operation = operations.get(case.operation)
    A, B = (tensor.detach().clone() for tensor in case.inputs())
    computed: list[str] = []

    def note(name: str, _before: list[Tensor], _given: list[Tensor], result: Any) -> None:
        if name.endswith("_backward") and result is not NotImplemented and result[0] is not None:
            computed.append(name)

    def gradients(chosen: Strategy, *leaves: Tensor) -> tuple[Tensor, ...]:
        results = operation.outputs(operation.function(*leaves, strategy=chosen))
        asked = [leaf for leaf in leaves if leaf.requires_grad]
        return torch.autograd.grad(results, asked, case.cotangents(results))

    both = gradients(strategy, A.clone().requires_grad_(), B.requires_grad_())
    (alone,) = gradients(spy_on(strategy, note), A, B)
    close(alone, both[1], "the gradient of B without that of A, against that with it")
    require(not computed, f"{set(computed)}: with need_matrix=False the first item is not None")


def _empty(operation: Operation) -> Iterator[Shaped]:
    shapes = ((0, 0), (3, 0), (0, 3), (0, 3, 3), (2, 0, 0), (0, 4, 2))
    taken = [s for s in shapes if s[-1] == s[-2] or not operation.square]
    return shaped(taken, (torch.float32,), (operation.name,))


@check_operations("empty matrices in", _empty)
def _check_empty(strategy: Strategy, case: Shaped) -> None:
    """No rows, no columns, no matrices: shapes follow, gradients are zeros of the input's shape."""
    operation = operations.get(case.what)
    A, B = (torch.zeros(size, device=device()) for size in (case.shape, (*case.shape[:-1], 2)))
    leaves, outputs = recorded(strategy, operation, (A, B)[: operation.arity])
    expected = operation.output_shapes(*(tuple(leaf.shape) for leaf in leaves))
    for output, size in zip(reversed(outputs), reversed(expected), strict=False):
        found_size = tuple(output.shape)
        require(found_size == size, f"a result of shape {found_size}, not {size}")
    cotangents = tuple(map(torch.ones_like, outputs))
    values = torch.autograd.grad(outputs, leaves, cotangents, materialize_grads=True)
    for value, leaf in zip(values, leaves, strict=True):
        is_zero = value.shape == leaf.shape and not value.any()
        require(is_zero, f"the gradient is not zeros of shape {tuple(leaf.shape)}")
