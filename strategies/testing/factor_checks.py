"""Every method of what `factor` returns, against the identities that define it.

F⁺ is accepted by its four Penrose residuals, which determine it; every other method is then
compared with the product that it stands for. The matrices have exact ranks and a condition number
κ ≤ 10. u is the unit roundoff.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy import gallery
from strategies.accuracy.penrose import penrose_residuals
from strategies.amplification import unit_roundoff
from strategies.errors import LinAlgError
from strategies.interface import Strategy
from strategies.operations import Operation
from strategies.pseudo_inverse import PseudoInverse, Structure
from strategies.testing.checks import (
    DTYPES,
    Check,
    NotApplicableError,
    Violation,
    close,
    device,
    is_number,
    named,
    numbered,
    require,
)

_COLUMNS = 3


class _Factored(NamedTuple):
    """A batch of matrices F of equal rank, what the strategy made of it, and F⁺ as a matrix."""

    what: str
    F: Tensor
    true_rank: int
    inverse: PseudoInverse
    dense: Tensor

    @property
    def b(self) -> Tensor:
        return numbered((*self.F.shape[:-1], _COLUMNS), self.F.dtype, 1)

    @property
    def x(self) -> Tensor:
        return numbered((*self.dense.shape[:-1], _COLUMNS), self.F.dtype, 2)


@functools.cache
def _specimens() -> list[gallery.Specimen]:
    """Tall, wide and square, full rank and deficient, every dtype, two batch dimensions or none."""
    return [
        specimen
        for dtype, shape, batch in itertools.product(DTYPES, ((6, 3), (3, 6), (4, 4)), ((), (2, 1)))
        for specimen in (
            gallery.random_with_condition(shape, dtype, 0.5, batch),
            gallery.random_with_rank(shape, dtype, 2, batch),
        )
    ]


def _factored(strategy: Strategy) -> Iterator[_Factored]:
    for specimen in _specimens():
        F, rank = specimen.matrix.to(device()), specimen.rank
        if strategy.requires_full_rank and rank < min(F.shape[-2:]):
            continue
        inverse = strategy.factor(F.clone())
        what = f"{_name(F)} of rank {rank}"
        yield _Factored(what, F, rank, inverse, inverse.dense())
        yield _Factored(f"adjoint of {what}", F.mH, rank, inverse.adjoint, inverse.dense().mH)


def _name(F: Tensor) -> str:
    return f"{'x'.join(map(str, F.shape))} {str(F.dtype).removeprefix('torch.')}"


def _for_every_factor(check: Callable[[_Factored], None]) -> Callable[[Strategy], None]:
    @functools.wraps(check)
    def run(strategy: Strategy) -> None:
        for case in _factored(strategy):
            try:
                check(case)
            except Violation as violation:
                raise Violation(f"{case.what}: {violation}") from None

    return run


@_for_every_factor
def _dense(case: _Factored) -> None:
    m, n = case.F.shape[-2:]
    require(case.dense.shape == (*case.F.shape[:-2], n, m), f"shape {tuple(case.dense.shape)}")
    residuals = penrose_residuals(case.F, case.inverse.dense())._asdict()
    worst = {name: float(residual.max()) for name, residual in residuals.items()}
    limit = 1000 * unit_roundoff(case.F.dtype)
    names = ", ".join(f"{name} {residual:.0e}" for name, residual in worst.items())
    is_inverse = all(residual <= limit for residual in worst.values())
    require(is_inverse, f"the Penrose residuals ({names}) are not all below {limit:.0e}")
    close(case.inverse.dense(), case.dense, "dense()")


_IDENTITIES = {
    "apply": "apply(b) against dense() @ b",
    "apply_adjoint": "apply_adjoint(x) against dense().mH @ x",
    "adjoint identity": "⟨x, apply(b)⟩ against ⟨apply_adjoint(x), b⟩",
    "apply_gram": "apply_gram(x) against F⁺ F⁺ᴴ x",
    "range_complement": "range_complement(b) + F F⁺ b against b",
    "null_complement": "null_complement(x) + F⁺ F x against x",
    "to_range": "to_range(from_range(c)) against c",
    "from_range": "from_range(to_range(b)) against F F⁺ b",
    "solve": "solve(to_range(b)) against F⁺ b",
    "solve_adjoint": "from_range(solve_adjoint(x)) against F⁺ᴴ x",
}


def _both_sides(identity: str, case: _Factored) -> tuple[Tensor, Tensor]:
    F, X, inverse, b, x = case.F, case.dense, case.inverse, case.b, case.x
    match identity:
        case "apply":
            return inverse.apply(b), X @ b
        case "apply_adjoint":
            return inverse.apply_adjoint(x), X.mH @ x
        case "adjoint identity":
            left, right = x.mH @ inverse.apply(b), inverse.apply_adjoint(x).mH @ b
            return left.sum((-2, -1)), right.sum((-2, -1))
        case "apply_gram":
            return inverse.apply_gram(x), X @ (X.mH @ x)
        case "range_complement":
            return inverse.range_complement(b) + F @ (X @ b), b
        case "null_complement":
            return inverse.null_complement(x) + X @ (F @ x), x
        case "to_range":
            c = inverse.to_range(b)
            return inverse.to_range(inverse.from_range(c)), c
        case "from_range":
            return inverse.from_range(inverse.to_range(b)), F @ (X @ b)
        case "solve":
            return inverse.solve(inverse.to_range(b)), X @ b
        case _:  # solve_adjoint
            return inverse.from_range(inverse.solve_adjoint(x)), X.mH @ x


def _identity(name: str) -> Check:
    @_for_every_factor
    def run(case: _Factored) -> None:
        close(*_both_sides(name, case), _IDENTITIES[name])

    return Check(name, run)


@_for_every_factor
def _rank_and_flags(case: _Factored) -> None:
    m, n = case.F.shape[-2:]
    rank, true_rank = case.inverse.rank, case.true_rank
    require(
        rank.shape == case.F.shape[:-2] and rank.dtype == torch.int64,
        f"rank is {rank.dtype} of shape {tuple(rank.shape)}, not int64 of the batch shape",
    )
    require(bool((rank == true_rank).all()), f"rank is {rank.tolist()}, not {true_rank}")
    flags = (case.inverse.full_column_rank, case.inverse.full_row_rank)
    expected = (true_rank == n, true_rank == m)
    message = f"(full_column_rank, full_row_rank) is {flags}, but it is {expected}"
    require(flags == expected, message)


@_for_every_factor
def _tensors_and_rebuilt(case: _Factored) -> None:
    """Autograd keeps only `tensors()`; what is held elsewhere would outlive the graph, or miss it."""
    inverse = case.inverse
    copies = [tensor.clone() for tensor in inverse.tensors()]
    same = inverse.rebuilt(iter(copies), case.F)
    for what, found, expected in (
        ("dense", same.dense(), inverse.dense()),
        ("apply", same.apply(case.b), inverse.apply(case.b)),
    ):
        require(torch.equal(found, expected), f"rebuilt over copies, {what}() differs")
    blanks = (torch.full_like(t, torch.nan) if is_number(t) else t for t in copies)
    blank = inverse.rebuilt(blanks, torch.full_like(case.F, torch.nan))
    require(
        bool(blank.dense().isnan().all()),
        "rebuilt over NaN, dense() still has numbers: they come from a tensor that tensors() lacks",
    )


def _triangular_structures(strategy: Strategy) -> None:
    """The other triangle belongs to another factor, as in packed LU."""
    structures = (Structure.LOWER, Structure.UNIT_LOWER, Structure.UPPER)
    for dtype, batch, structure in itertools.product(DTYPES, ((), (2,)), structures):
        packed = numbered((*batch, 4, 4), dtype, 3) / 4
        packed = packed + 2 * torch.eye(4).to(packed)
        inverse = strategy.factor(packed.clone(), structure, rtol=0.0, atol=0.0)
        expected = torch.linalg.inv(structure.dense(packed))
        what = f"{structure.value} {str(dtype).removeprefix('torch.')}"
        close(inverse.dense(), expected, f"{what}: dense()")
        b = numbered((*batch, 4, _COLUMNS), dtype, 4)
        close(inverse.apply(b), expected @ b, f"{what}: apply(b)")
        close(inverse.apply_adjoint(b), expected.mH @ b, f"{what}: apply_adjoint(b)")


def _tolerances(strategy: Strategy) -> None:
    """Rtol and atol cut well separated singular values where they say, one bound a matrix too."""
    F = gallery.random_with_condition((5, 2), torch.float64, 4, (2,)).matrix.to(device())
    each = torch.tensor([1e-2, 1e-6], dtype=torch.float64, device=device())
    for name, value, expected in (
        ("rtol", 1e-2, [1, 1]),
        ("atol", 1e-2, [1, 1]),
        ("rtol", each, [1, 2]),
        ("atol", each, [1, 2]),
        ("rtol", 1e-6, [2, 2]),
    ):
        is_refused = strategy.requires_full_rank and min(expected) < 2
        found = f"{name}={value}: singular values 1 and 1e-4"
        tolerance: dict[str, Any] = {name: value}
        try:
            ranks = strategy.factor(F.clone(), **tolerance).rank.tolist()
        except LinAlgError:
            require(is_refused, f"{found} were refused, though it takes matrices of that rank")
        else:
            require(not is_refused, f"{found} should have been refused as rank-deficient")
            require(ranks == expected, f"{found} give ranks {ranks}, not {expected}")


def _own_forwards(
    strategy: Strategy, F: Tensor, b: Tensor
) -> Iterator[tuple[str, Tensor, PseudoInverse, Operation]]:
    """What the strategy has methods of its own for: name, result, F⁺ as it is held, operation."""
    for operation in map(operations.get, operations.names()):
        name = f"{operation.stem}_forward"
        takes_it = F.shape[-1] == F.shape[-2] or not operation.square
        if takes_it and hasattr(strategy, name):
            arguments = (F.clone(), b.clone())[: operation.arity]
            found = getattr(strategy, name)(*arguments)
            if found is not NotImplemented:
                yield name, *found, operation


def _forwards(strategy: Strategy) -> None:
    """What own forwards return, and the factors that come with it, are as by the formulas."""
    for dtype in DTYPES:
        for shape, batch in itertools.product(((6, 3), (3, 6), (4, 4)), ((), (2,), (20,))):
            F = gallery.random_with_condition(shape, dtype, 0.5, batch).matrix.to(device())
            b = numbered((*batch, shape[0], _COLUMNS), dtype, 8)
            dense = torch.linalg.pinv(F)
            for name, result, inverse, operation in _own_forwards(strategy, F, b):
                what = f"{name} of {_name(F)}"
                arguments = (F, b)[: operation.arity]
                (expected,) = operation.outputs(operation.function(*arguments, strategy="native"))
                close(result, expected, what)
                close(inverse.apply(b), dense @ b, f"factors of {what}: apply(b)")


def _stable_gram(strategy: Strategy) -> None:
    """F · apply_gram(x) is apply_adjoint(x) far within κ² u, of an inverse that says so."""
    F = gallery.random_with_condition((12, 4), torch.float64, 6).matrix.to(device())
    b, x = numbered((12, _COLUMNS), torch.float64, 6), numbered((4, _COLUMNS), torch.float64, 7)
    held = [strategy.factor(F.clone()), *(found[2] for found in _own_forwards(strategy, F, b))]
    claiming = [inverse for inverse in held if inverse.has_stable_gram]
    if not claiming:
        raise NotApplicableError("does not claim it")
    for inverse in claiming:
        expected = inverse.apply_adjoint(x)
        error = float(torch.linalg.matrix_norm(F @ inverse.apply_gram(x) - expected))
        limit = 1e-8 * float(torch.linalg.matrix_norm(expected))
        require(
            error <= limit, f"F @ apply_gram(x) is off by {error:.1e} at κ = 1e6, not {limit:.0e}"
        )


def _mixed_ranks_in_a_batch(strategy: Strategy) -> None:
    """Matrices of a batch may differ in rank, down to zero."""
    if strategy.requires_full_rank:
        raise NotApplicableError("needs full rank")
    drawn = [gallery.random_with_rank((5, 3), torch.float64, r, (), r).matrix for r in range(4)]
    parts = torch.stack(drawn).to(device())
    inverse = strategy.factor(parts)
    require(inverse.rank.tolist() == [0, 1, 2, 3], f"ranks {inverse.rank.tolist()}, not 0 to 3")
    b = numbered((4, 5, _COLUMNS), torch.float64, 5)
    for i, part in enumerate(parts):
        alone = strategy.factor(part)
        what = f"rank {i} among ranks 0 to 3"
        close(inverse.dense()[i], alone.dense(), f"{what}: dense()")
        close(inverse.apply(b)[i], alone.apply(b[i]), f"{what}: apply(b)")


CHECKS = (
    *named(_dense),
    *map(_identity, _IDENTITIES),
    *named(
        _rank_and_flags,
        _tensors_and_rebuilt,
        _triangular_structures,
        _tolerances,
        _forwards,
        _stable_gram,
        _mixed_ranks_in_a_batch,
    ),
)
