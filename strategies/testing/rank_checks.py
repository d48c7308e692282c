"""What follows from ranks: what counts as zero, flags, refusals and singular values.

Tolerances are checked in every function that takes one, and in their derivatives; then matrices that
differ in rank, that are singular where they must not be, or that hold NaN.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from strategies import operations, registry
from strategies.accuracy import gallery
from strategies.accuracy.spectra import Request, with_singular_values
from strategies.errors import LinAlgError
from strategies.formulas.domains import GENERAL
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    Shaped,
    Violation,
    check_each,
    check_operations,
    close,
    device,
    numbered,
    records,
    require,
    require_named,
    shaped,
    sized,
    skip_native,
)
from strategies.testing.problems import Tensors, matrices, recorded, solved

_SHAPES = ((12, 3), (3, 12), (9, 9), (4, 4))
_SMALL = 1e-6
_BETWEEN = 1e-3
_COARSE = 1e10
"""Times what rounding explains: far above 10⁻⁶, the smallest of the singular values in question, far
below 1. What is neither dropped nor kept exactly is as far off."""


class _Cut(NamedTuple):
    """Matrices of singular values near 1 and one of 10⁻⁶, a tolerance, and the ranks that follow."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    tolerance: dict[str, Any]
    is_cut: tuple[bool, ...]
    way: str

    def __str__(self) -> str:
        given = ", ".join(
            f"{name}={value.tolist() if isinstance(value, Tensor) else value}"
            for name, value in self.tolerance.items()
        )
        size = sized(self.shape, self.dtype)
        return f"{self.way} of {size}, singular values 1 to 0.5 and 1e-6, {given}"

    @property
    def matrix(self) -> Tensor:
        return with_smallest(_SMALL, self.shape, self.dtype)

    @property
    def ranks(self) -> list[int]:
        return [min(self.shape[-2:]) - is_cut for is_cut in self.is_cut]


def with_smallest(value: float, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Matrices with singular values from 1 to 1/2, the smallest replaced."""
    *batch, m, n = shape
    singular = np.linspace(1, 0.5, min(m, n))
    singular[-1] = value
    drawn = with_singular_values(Request((m, n), dtype, tuple(batch), 40), singular)
    return torch.from_numpy(drawn).to(device(), dtype)


def _cuts(way: str = "factor") -> Iterator[_Cut]:
    """Batches of two, with one bound for both or one for each."""
    below = _SMALL / 1e3
    one_each = torch.tensor([_BETWEEN, below], dtype=torch.float64, device=device())
    bounds = ((_BETWEEN, (True, True)), (one_each, (True, False)), (below, (False, False)))
    for i, shape in enumerate(_SHAPES):
        dtype = (torch.float64, torch.complex128)[i % 2]
        for (bound, is_cut), name in itertools.product(bounds, ("rtol", "atol")):
            yield _Cut((2, *shape), dtype, {name: bound}, is_cut, way)


def _require_ranks(strategy: Strategy, compute: Callable[[], Any], case: _Cut) -> Any:
    """What is computed, or None where the strategy refuses what it has to refuse."""
    refuses = strategy.requires_full_rank and any(case.is_cut)
    try:
        found = compute()
    except LinAlgError as refusal:
        require(refuses, f"refused, though the ranks {case.ranks} are what it takes: {refusal}")
        return None
    require(not refuses, "taken, where LinAlgError is due: it needs full rank")
    return found


@check_each(_cuts)
def _tolerances(strategy: Strategy, case: _Cut) -> None:
    """Rtol and atol of `factor` cut where they say, one bound a matrix too."""
    F = case.matrix
    compute = partial(strategy.factor, F.clone(), **case.tolerance)
    inverse = _require_ranks(strategy, compute, case)
    if inverse is not None:
        found = inverse.rank.tolist()
        require(found == case.ranks, f"factor gives ranks {found}, not {case.ranks}")
        for i, rank in enumerate(case.ranks):
            U, S, Vh = torch.linalg.svd(F[i], full_matrices=False)
            expected = (Vh.mH[:, :rank] / S[:rank]) @ U[:, :rank].mH
            what = f"dense() of member {i} against a truncated SVD"
            close(inverse.dense()[i], expected, what, loosened=_COARSE)


def _cuts_of(operation: Operation) -> Iterator[_Cut]:
    """As in torch, where rcond is a number."""
    for case in _cuts(operation.name):
        if operation.arity == 1 or isinstance(case.tolerance.get("rtol"), float):
            yield case


@check_operations("tolerances of", _cuts_of, lambda operation: operation.truncates)
def _check_tolerances(strategy: Strategy, case: _Cut) -> None:
    """Results, gradients and derivatives of those, of operations that take a tolerance."""
    skip_native(strategy, "whose gradients of lstsq know no rcond")
    operation = operations.get(case.way)
    inputs = (case.matrix, numbered((*case.shape[:-1], 2), case.dtype, 44))[: operation.arity]
    ((name, bound),) = case.tolerance.items()
    options = {"rcond" if operation.arity > 1 else name: bound}
    of_this = partial(_derivatives, strategy, operation, inputs, options)
    found = _require_ranks(strategy, of_this, case)
    if found is not None:
        # Derivatives at a condition number of 10⁶ are for the accuracy class to judge.
        names = list(found) if any(case.is_cut) else ["the result"]
        expected = _derivatives(registry.get("svd_truncated_pinv"), operation, inputs, options)
        for what in names:
            message = f"{what} against that of svd_truncated_pinv"
            close(found[what], expected[what], message, loosened=_COARSE)


def _derivatives(
    strategy: Strategy, operation: Operation, inputs: Tensors, options: dict[str, Any]
) -> dict[str, Tensor]:
    leaves = tuple(tensor.clone().requires_grad_() for tensor in inputs)

    def compute(*tensors: Tensor) -> Tensor:
        return operation.outputs(operation.function(*tensors, strategy=strategy, **options))[0]

    result = compute(*leaves)
    G = numbered(tuple(result.shape), result.dtype, 45).requires_grad_()
    (gradient,) = torch.autograd.grad(result, leaves[:1], G, create_graph=True)
    tangent = numbered(tuple(gradient.shape), gradient.dtype, 46)
    of_A, of_G = torch.autograd.grad(gradient, (leaves[0], G), tangent)
    tangents = (tangent, *map(torch.zeros_like, leaves[1:]))
    forward = torch.func.jvp(compute, tuple(map(Tensor.detach, leaves)), tangents)[1]
    return {
        "the result": result.detach(),
        "the gradient of A": gradient.detach(),
        "the second derivative": of_A,
        "the derivative of the gradient by the cotangent": of_G,
        "the tangent": forward,
    }


def _rank_shown(strategy: Strategy, way: str, F: Tensor) -> int:
    """As the strategy's factors, inverse or least-squares solution show it."""
    if way == "factor":
        return int(strategy.factor(F).rank)
    function = operations.get(way).function
    if way == "lstsq":
        return int(function(F, numbered((F.shape[0], 2), F.dtype, 47), strategy=strategy).rank)
    # A⁺ of a matrix of rank r has r singular values of 1 or more.
    return int((torch.linalg.svdvals(function(F, strategy=strategy)) > 0.5).sum())


@check_each(
    lambda: shaped(((12, 2), (2, 64), (8, 8), (64, 2)), DTYPES, ("factor", "pinv", "lstsq"))
)
def _default_tolerance(strategy: Strategy, case: Shaped) -> None:
    """Without a tolerance max(m, n)·ε counts; with atol alone nothing relative does."""
    if case.what == "lstsq":
        skip_native(strategy, "whose lstsq has ranks that change from call to call")
    bound = max(case.shape) * torch.finfo(case.dtype).eps
    for value, is_zero in ((bound / 8, True), (bound * 8, False)):
        where = f"the smallest singular value is {value:.1e}, max(m, n)·ε is {bound:.1e}"
        try:
            F = with_smallest(value, case.shape, case.dtype)
            if strategy.requires_full_rank:
                # Triangular factors show the singular values of nothing but a diagonal.
                F = torch.zeros_like(F).diagonal_scatter(torch.linalg.svdvals(F).to(F.dtype))
                F.diagonal()[-1] = value
            rank = _rank_shown(strategy, case.what, F)
        except LinAlgError:
            require(strategy.requires_full_rank, f"{where}: refused")
            continue  # even where it should see more: that is a matter of its class
        due = min(case.shape) - is_zero
        refuses = is_zero and strategy.requires_full_rank
        require(not refuses, f"{where}: taken, where LinAlgError is due")
        require(rank == due, f"{where}: rank {rank}, not {due}")


@check_each(lambda: ("factor", "pinv"))
def _atol_alone(strategy: Strategy, way: str) -> None:
    """With atol alone rtol is zero, as in torch: however small, what is larger counts."""
    F = torch.diag(torch.tensor([1.0, 1e-17], dtype=torch.float64)).to(device())
    try:
        if way == "factor":
            inverse = strategy.factor(F, atol=1e-30).dense()
        else:
            inverse = operations.get(way).function(F, atol=1e-30, strategy=strategy)
    except LinAlgError:
        require(strategy.requires_full_rank, "diag(1, 1e-17) with atol=1e-30: refused")
        return
    kept = float(inverse[1, 1])
    message = f"diag(1, 1e-17) with atol=1e-30: the inverse of 1e-17 is {kept:g}"
    require(abs(kept - 1e17) < 1e5, message)


class _Mixed(NamedTuple):
    """A batch of matrices that differ in rank."""

    shape: tuple[int, int]
    dtype: torch.dtype
    ranks: tuple[int, ...]
    way: str

    def __str__(self) -> str:
        size = sized((len(self.ranks), *self.shape), self.dtype)
        return f"{self.way} of {size} of ranks {self.ranks}"

    @property
    def matrix(self) -> Tensor:
        drawn = (gallery.random_with_rank(*self[:2], rank, (), rank) for rank in self.ranks)
        return torch.stack([specimen.matrix for specimen in drawn]).to(device())


def _mixed_cases(way: str = "factor") -> Iterator[_Mixed]:
    for shape in ((5, 3), (3, 5), (4, 4)):
        full = min(shape)
        for dtype in DTYPES:
            yield _Mixed(shape, dtype, tuple(range(full + 1)), way)
        for ranks in ((full, full - 1), (full - 1, full)):
            yield _Mixed(shape, torch.float64, ranks, way)


def _require_any_rank(strategy: Strategy) -> None:
    if strategy.requires_full_rank:
        raise NotApplicableError("needs full rank")


@check_each(_mixed_cases)
def _mixed_ranks_in_a_batch(strategy: Strategy, case: _Mixed) -> None:
    """Matrices of a batch may differ in rank, down to zero; flags hold for all of them."""
    _require_any_rank(strategy)
    m, n = case.shape
    F = case.matrix
    inverse = strategy.factor(F.clone())
    ranks, least = inverse.rank.tolist(), min(case.ranks)
    require(ranks == list(case.ranks), f"rank is {ranks}")
    flags = inverse.full_column_rank, inverse.full_row_rank
    due = least == n, least == m
    require(flags == due, f"(full_column_rank, full_row_rank) is {flags}, not {due}")
    b = numbered((len(ranks), m, 3), case.dtype, 5)
    x = numbered((len(ranks), n, 3), case.dtype, 6)
    for i, matrix in enumerate(F):
        alone = strategy.factor(matrix.clone())
        member = f"of member {i} (rank {ranks[i]}) against the same matrix alone"
        close(inverse.dense()[i], alone.dense(), f"dense() {member}")
        for method, of in METHODS.items():
            given = b if of == "b" else x
            found = getattr(inverse, method)(given)[i]
            expected, scale = getattr(alone, method)(given[i]), least_scale(method, given)
            close(found, expected, f"{method}({of}) {member}", least_scale=scale)


METHODS = {
    "apply": "b",
    "range_complement": "b",
    "apply_adjoint": "x",
    "apply_gram": "x",
    "null_complement": "x",
}
"""The methods of a `PseudoInverse` from and to vectors: which are m long (b), and which n (x)."""


def least_scale(method: str, given: Tensor) -> float:
    """What errors of a method are measured by at least: a projection may leave roundoff of its vectors."""
    return float(given.abs().max()) if method.endswith("_complement") else 0.0


@check_operations("mixed ranks in", lambda of: _mixed_cases(of.name), lambda of: of.truncates)
def _check_mixed(strategy: Strategy, case: _Mixed) -> None:
    """Results and gradients of matrices of different rank, against those of each alone."""
    _require_any_rank(strategy)
    operation = operations.get(case.way)
    if operation.arity > 1:
        skip_native(strategy, "whose LAPACK gelsy may start from the pivots of the matrix before")
    b = numbered((len(case.ranks), case.shape[0], 2), case.dtype, 7)
    inputs = (case.matrix, b)[: operation.arity]
    shapes = operation.output_shapes(*(tuple(t.shape) for t in inputs))
    cotangents = tuple(numbered(size, case.dtype, 8) for size in shapes)
    together = [*itertools.chain(*solved(strategy, operation, inputs, cotangents))]
    reference = registry.get("svd_truncated_pinv")
    names = "result", "gradient of A", "gradient of B"
    for i, rank in enumerate(case.ranks):
        own = tuple(t[i] for t in inputs), tuple(t[i] for t in cotangents)
        alone = itertools.chain(*solved(reference, operation, *own))
        for name, found, due in zip(names, together, alone, strict=False):
            what = f"{name} of member {i} (rank {rank}) against svd_truncated_pinv of it alone"
            close(found[i], due, what, least_scale=1e-3)


class _Spoiled(NamedTuple):
    """Matrices, or a batch of them, and which matrix or entry is spoiled."""

    way: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    where: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.way} of {sized(self.shape, self.dtype)}, spoiled at {self.where}"


def _singular_cases(operation: Operation) -> Iterator[_Spoiled]:
    shapes = ((4, 4), (2, 2)) if operation.square else ((4, 4), (6, 3), (3, 6))
    batches: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((2, 2), (1, 0))]
    batches += [((3,), (0,)), ((3,), (2,)), ((40,), (39,))]
    dtypes = torch.float32, torch.complex128
    for shape, (batch, where), dtype in itertools.product(shapes, batches, dtypes):
        yield _Spoiled(operation.name, (*batch, *shape), dtype, where)


def _has_singular(operation: Operation) -> bool:
    """Matrices of other domains are never singular."""
    return operation.truncates or (operation.needs_full_rank and operation.domain is GENERAL)


@check_operations("singular matrices in", _singular_cases, _has_singular)
def _check_singular(strategy: Strategy, case: _Spoiled) -> None:
    """A matrix with a column of zeros is refused, wherever in a batch, where full rank is needed."""
    skip_native(strategy, "which words its own errors")
    operation = operations.get(case.way)
    if not (operation.needs_full_rank or strategy.requires_full_rank):
        raise NotApplicableError("takes matrices of any rank")
    F = matrices(case.shape, case.dtype, 9)
    long = F[case.where] if F.shape[-2] >= F.shape[-1] else F[case.where].mT
    long[:, -1] = 0
    inputs = F, numbered((*case.shape[:-1], 2), case.dtype, 10)
    try:
        leaves, results = recorded(strategy, operation, inputs[: operation.arity])
        torch.autograd.grad(results, leaves, results)
    except LinAlgError as refusal:
        require_named(refusal, strategy)
    else:
        raise Violation("gave a result where LinAlgError is due")


@check_each(lambda: shaped(((5, 3), (3, 5), (4, 4), (2, 6, 3)), DTYPES))
def _singular_values(strategy: Strategy, case: Shaped) -> None:
    """All of them, in descending order, those cut off included; or None."""
    rtol = None if strategy.requires_full_rank else 1e-2
    F = with_smallest(1e-3, case.shape, case.dtype)
    found = strategy.factor(F.clone(), rtol=rtol).singular_values
    if found is None:
        raise NotApplicableError("its factors do not hold them")
    close(found, torch.linalg.svdvals(F), f"rtol={rtol}: singular_values against svdvals")


def _poisoned_cases() -> Iterator[_Spoiled]:
    dtypes = torch.float64, torch.complex64
    for (m, n), dtype in itertools.product(((4, 4), (6, 3), (3, 6)), dtypes):
        ways = [record.name for record in records() if m == n or not record.square]
        for way, i, j in itertools.product(("factor", *ways), (0, m - 1), (0, n - 1)):
            yield _Spoiled(way, (2, m, n), dtype, (1, i, j))


@check_each(_poisoned_cases)
def _not_a_number(strategy: Strategy, case: _Spoiled) -> None:
    """NaN in a matrix never gives numbers that look right: it is refused, or shows."""
    skip_native(strategy, "which may pass NaN to LAPACK")
    F = matrices(case.shape, case.dtype, 11)
    F[case.where] = torch.nan
    with contextlib.suppress(RuntimeError):
        if case.way == "factor":
            found = strategy.factor(F).dense()
        else:
            operation = operations.get(case.way)
            F = operation.domain.part(F)
            if bool(F.isfinite().all()):
                return  # it is not read
            B = numbered((*case.shape[:-1], 2), case.dtype, 12)
            leaves, results = recorded(strategy, operation, (F, B)[: operation.arity])
            (found,) = torch.autograd.grad(results, leaves[:1], results)
        require(not bool(found[1].isfinite().all()), "the result holds finite numbers only")
