"""What follows from ranks: flags, refusals and singular values, of matrices that differ in rank."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from strategies import operations, registry
from strategies.accuracy import gallery
from strategies.formulas.domains import GENERAL
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    Shaped,
    check_each,
    check_operations,
    close,
    device,
    numbered,
    records,
    require,
    require_refusal,
    shaped,
    sized,
    skip_native,
)
from strategies.testing.problems import matrices, recorded, solved
from strategies.testing.tolerance_checks import with_smallest


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


@check_each(lambda _: _mixed_cases())
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


def _singular_cases(operation: Operation) -> Iterator[Shaped]:
    shapes = ((4, 4), (2, 2)) if operation.square else ((4, 4), (6, 3), (3, 6))
    batches: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((2, 2), (1, 0))]
    batches += [((3,), (0,)), ((3,), (2,)), ((40,), (39,))]
    dtypes = torch.float32, torch.complex128
    for shape, (batch, where), dtype in itertools.product(shapes, batches, dtypes):
        yield Shaped((*batch, *shape), dtype, operation.name, where)


def _has_singular(operation: Operation) -> bool:
    """Matrices of other domains are never singular."""
    return operation.truncates or (operation.needs_full_rank and operation.domain is GENERAL)


@check_operations("singular matrices in", _singular_cases, _has_singular)
def _check_singular(strategy: Strategy, case: Shaped) -> None:
    """A matrix with a column of zeros is refused, wherever in a batch, where full rank is needed."""
    skip_native(strategy, "which words its own errors")
    operation = operations.get(case.what)
    if not (operation.needs_full_rank or strategy.requires_full_rank):
        raise NotApplicableError("takes matrices of any rank")
    F = matrices(case.shape, case.dtype, 9)
    long = F[case.spoiled] if F.shape[-2] >= F.shape[-1] else F[case.spoiled].mT
    long[:, -1] = 0
    inputs = F, numbered((*case.shape[:-1], 2), case.dtype, 10)

    def compute() -> None:
        leaves, results = recorded(strategy, operation, inputs[: operation.arity])
        torch.autograd.grad(results, leaves, results)

    require_refusal(strategy, compute)


@check_each(lambda _: shaped(((5, 3), (3, 5), (4, 4), (2, 6, 3)), DTYPES))
def _singular_values(strategy: Strategy, case: Shaped) -> None:
    """All of them, in descending order, those cut off included; or None."""
    rtol = None if strategy.requires_full_rank else 1e-2
    F = with_smallest(1e-3, case.shape, case.dtype)
    found = strategy.factor(F.clone(), rtol=rtol).singular_values
    if found is None:
        raise NotApplicableError("its factors do not hold them")
    close(found, torch.linalg.svdvals(F), f"rtol={rtol}: singular_values against svdvals")


def _poisoned_cases() -> Iterator[Shaped]:
    dtypes = torch.float64, torch.complex64
    for (m, n), dtype in itertools.product(((4, 4), (6, 3), (3, 6)), dtypes):
        ways = [record.name for record in records() if m == n or not record.square]
        for way, i, j in itertools.product(("factor", *ways), (0, m - 1), (0, n - 1)):
            yield Shaped((2, m, n), dtype, way, (1, i, j))


@check_each(lambda _: _poisoned_cases())
def _not_a_number(strategy: Strategy, case: Shaped) -> None:
    """NaN in a matrix never gives numbers that look right: it is refused, or shows."""
    skip_native(strategy, "which may pass NaN to LAPACK")
    F = matrices(case.shape, case.dtype, 11)
    F[case.spoiled] = torch.nan
    with contextlib.suppress(RuntimeError):
        if case.what == "factor":
            found = strategy.factor(F).dense()
        else:
            operation = operations.get(case.what)
            F = operation.domain.part(F)
            if bool(F.isfinite().all()):
                return  # it is not read
            B = numbered((*case.shape[:-1], 2), case.dtype, 12)
            leaves, results = recorded(strategy, operation, (F, B)[: operation.arity])
            (found,) = torch.autograd.grad(results, leaves[:1], results)
        require(not bool(found[1].isfinite().all()), "the result holds finite numbers only")
