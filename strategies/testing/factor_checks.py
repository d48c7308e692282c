"""Every method of what `factor` returns, against the identities that define it.

F⁺ is accepted by its four Penrose residuals, which determine it; every other method is then
compared with the product that it stands for. The matrices have exact ranks and κ ≤ 10.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.accuracy import gallery, measures
from strategies.errors import LinAlgError
from strategies.interface import Strategy
from strategies.pseudo_inverse import PseudoInverse, Structure
from strategies.testing.checks import (
    DTYPES,
    Check,
    NotApplicableError,
    Violation,
    close,
    device,
    numbered,
    require,
)

__all__ = ["CHECKS"]

_COLUMNS = 3


@dataclass(frozen=True)
class _Factored:
    """A batch of matrices F, what the strategy made of it, and F⁺ as a matrix."""

    what: str
    F: Tensor
    inverse: PseudoInverse
    dense: Tensor

    def b(self) -> Tensor:
        return numbered((*self.F.shape[:-1], _COLUMNS), self.F.dtype, 1)

    def x(self) -> Tensor:
        return numbered((*self.dense.shape[:-1], _COLUMNS), self.F.dtype, 2)


@functools.cache
def _matrices() -> tuple[tuple[str, Tensor, int], ...]:
    """Tall, wide and square, full rank and deficient, every dtype, two batch dimensions or none."""
    found = []
    for dtype in DTYPES:
        batches: tuple[tuple[int, ...], ...] = ((), (2, 1))
        for shape in ((6, 3), (3, 6), (4, 4)):
            for batch in batches:
                full = gallery.random_with_condition(shape, dtype, 0.5, batch)
                half = gallery.random_with_rank(shape, dtype, 2, batch)
                for specimen, kind in ((full, ""), (half, " of rank 2")):
                    sizes = "x".join(map(str, (*batch, *shape)))
                    name = f"{sizes}{kind} {str(dtype).removeprefix('torch.')}"
                    found.append((name, specimen.matrix, specimen.rank))
    return tuple(found)


def _factored(strategy: Strategy) -> Iterator[_Factored]:
    for what, matrix, rank in _matrices():
        if strategy.requires_full_rank and rank < min(matrix.shape[-2:]):
            continue
        F = matrix.to(device())
        inverse = strategy.factor(F.clone())
        yield _Factored(what, F, inverse, inverse.dense())
        yield _Factored(f"adjoint of {what}", F.mH, inverse.adjoint, inverse.dense().mH)


def _check_dense(case: _Factored) -> None:
    n, m = case.F.shape[-1], case.F.shape[-2]
    require(case.dense.shape == (*case.F.shape[:-2], n, m), f"shape {tuple(case.dense.shape)}")
    residuals = measures.penrose_residuals(case.F, case.inverse.dense())
    worst = max(float(residual.max()) for residual in residuals)
    limit = 100 * measures.unit_roundoff(case.F.dtype) * 10
    names = ", ".join(
        f"{name} {float(value.max()):.0e}" for name, value in residuals._asdict().items()
    )
    require(worst <= limit, f"the Penrose residuals ({names}) are above {limit:.0e}")
    close(case.inverse.dense(), case.dense, "dense()")


def _check_apply(case: _Factored) -> None:
    close(case.inverse.apply(case.b()), case.dense @ case.b(), "apply(b) against dense() @ b")


def _check_apply_adjoint(case: _Factored) -> None:
    expected = case.dense.mH @ case.x()
    close(case.inverse.apply_adjoint(case.x()), expected, "apply_adjoint(x) against dense().mH @ x")


def _check_adjoint_identity(case: _Factored) -> None:
    b, x = case.b(), case.x()
    left = (x.mH @ case.inverse.apply(b)).sum((-2, -1))
    right = (case.inverse.apply_adjoint(x).mH @ b).sum((-2, -1))
    close(left, right, "⟨x, apply(b)⟩ against ⟨apply_adjoint(x), b⟩")


def _check_apply_gram(case: _Factored) -> None:
    expected = case.dense @ (case.dense.mH @ case.x())
    close(case.inverse.apply_gram(case.x()), expected, "apply_gram(x) against F⁺ F⁺ᴴ x")


def _check_range_complement(case: _Factored) -> None:
    b = case.b()
    found = case.inverse.range_complement(b)
    close(found + case.F @ (case.dense @ b), b, "range_complement(b) + F F⁺ b against b")


def _check_null_complement(case: _Factored) -> None:
    x = case.x()
    found = case.inverse.null_complement(x)
    close(found + case.dense @ (case.F @ x), x, "null_complement(x) + F⁺ F x against x")


def _check_to_range(case: _Factored) -> None:
    coordinates = case.inverse.to_range(case.b())
    again = case.inverse.to_range(case.inverse.from_range(coordinates))
    close(again, coordinates, "to_range(from_range(c)) against c")


def _check_from_range(case: _Factored) -> None:
    found = case.inverse.from_range(case.inverse.to_range(case.b()))
    close(found, case.F @ (case.dense @ case.b()), "from_range(to_range(b)) against F F⁺ b")


def _check_solve(case: _Factored) -> None:
    found = case.inverse.solve(case.inverse.to_range(case.b()))
    close(found, case.dense @ case.b(), "solve(to_range(b)) against F⁺ b")


def _check_solve_adjoint(case: _Factored) -> None:
    found = case.inverse.from_range(case.inverse.solve_adjoint(case.x()))
    close(found, case.dense.mH @ case.x(), "from_range(solve_adjoint(x)) against F⁺ᴴ x")


def _check_rank_and_flags(case: _Factored) -> None:
    m, n = case.F.shape[-2:]
    true_rank = 2 if "rank 2" in case.what else min(m, n)
    rank = case.inverse.rank
    require(
        rank.shape == case.F.shape[:-2] and rank.dtype == torch.int64,
        f"rank is {rank.dtype} of shape {tuple(rank.shape)}, not int64 of the batch shape",
    )
    require(bool((rank == true_rank).all()), f"rank is {rank.tolist()}, not {true_rank}")
    flags = (case.inverse.full_column_rank, case.inverse.full_row_rank)
    expected = (true_rank == n, true_rank == m)
    require(
        flags == expected, f"(full_column_rank, full_row_rank) is {flags}, but it is {expected}"
    )


def _check_rebuilt(case: _Factored) -> None:
    """Autograd keeps only `tensors()`; what is held elsewhere would outlive the graph, or miss it."""
    copies = [tensor.clone() for tensor in case.inverse.tensors()]
    same = case.inverse.rebuilt(iter(copies), case.F)
    require(torch.equal(same.dense(), case.inverse.dense()), "rebuilt over copies, dense() differs")
    require(
        torch.equal(same.apply(case.b()), case.inverse.apply(case.b())),
        "rebuilt over copies, apply() differs",
    )
    blanks = [
        torch.full_like(tensor, torch.nan) if tensor.is_floating_point() or tensor.is_complex()
        else tensor
        for tensor in copies
    ]  # fmt: skip
    blank = case.inverse.rebuilt(iter(blanks), torch.full_like(case.F, torch.nan))
    require(
        bool(blank.dense().isnan().all()),
        "rebuilt over NaN, dense() still has numbers: they come from a tensor that tensors() lacks",
    )


def _for_every_factor(check: Callable[[_Factored], None]) -> Callable[[Strategy], None]:
    def run(strategy: Strategy) -> None:
        for case in _factored(strategy):
            try:
                check(case)
            except Violation as violation:
                raise Violation(f"{case.what}: {violation}") from None

    return run


def _check_triangular_structures(strategy: Strategy) -> None:
    """The other triangle belongs to another factor, as in packed LU."""
    for dtype in DTYPES:
        for batch in ((), (2,)):
            packed = numbered((*batch, 4, 4), dtype, 3) / 4
            packed = packed + 2 * torch.eye(4).to(packed)
            for structure in (Structure.LOWER, Structure.UNIT_LOWER, Structure.UPPER):
                inverse = strategy.factor(packed.clone(), structure, rtol=0.0, atol=0.0)
                expected = torch.linalg.inv(structure.dense(packed))
                what = f"{structure.value} {str(dtype).removeprefix('torch.')}"
                close(inverse.dense(), expected, f"{what}: dense()")
                b = numbered((*batch, 4, _COLUMNS), dtype, 4)
                close(inverse.apply(b), expected @ b, f"{what}: apply(b)")
                close(inverse.apply_adjoint(b), expected.mH @ b, f"{what}: apply_adjoint(b)")


def _check_tolerances(strategy: Strategy) -> None:
    """Rtol and atol cut well separated singular values where they say, one bound a matrix too."""
    F = gallery.random_with_condition((5, 2), torch.float64, 4, (2,)).matrix.to(device())
    each = torch.tensor([1e-2, 1e-6], dtype=torch.float64, device=device())
    for options in ({"rtol": 1e-2}, {"atol": 1e-2}, {"rtol": each}, {"atol": each}):
        said = ", ".join(f"{name}={value}" for name, value in options.items())
        expected = [1, 2] if isinstance(next(iter(options.values())), Tensor) else [1, 1]
        try:
            ranks = strategy.factor(F.clone(), **options).rank.tolist()
        except LinAlgError:
            require(
                strategy.requires_full_rank,
                f"{said}: refused, though it takes matrices of any rank",
            )
            continue
        require(
            not strategy.requires_full_rank,
            f"{said}: singular values 1 and 1e-4 should have been refused as rank-deficient",
        )
        require(ranks == expected, f"{said}: ranks {ranks}, not {expected}")
    require(
        strategy.factor(F.clone(), rtol=1e-6).rank.tolist() == [2, 2],
        "rtol=1e-06: singular values 1 and 1e-4 should both count",
    )


def _check_forwards(strategy: Strategy) -> None:
    """What the forwards return, and the factors that come with it, are those of `factor`."""
    for dtype in DTYPES:
        for shape, batch in itertools.product(((6, 3), (3, 6), (4, 4)), ((), (2,), (20,))):
            F = gallery.random_with_condition(shape, dtype, 0.5, batch).matrix.to(device())
            b = numbered((*batch, shape[0], _COLUMNS), dtype, 8)
            expected = strategy.factor(F.clone()).dense()
            found = {
                "pseudo_inverse": (strategy.pseudo_inverse(F.clone()), expected),
                "least_squares": (strategy.least_squares(F.clone(), b.clone()), expected @ b),
            }
            if shape[0] == shape[1]:
                found["inverse"] = strategy.inverse(F.clone()), expected
                found["solve"] = strategy.solve(F.clone(), b.clone()), expected @ b
            sizes = "x".join(map(str, F.shape))
            for name, ((result, inverse), value) in found.items():
                what = f"{name} of {sizes} {str(dtype).removeprefix('torch.')}"
                close(result, value, what)
                close(inverse.apply(b), expected @ b, f"factors of {what}: apply(b)")


def _check_stable_gram(strategy: Strategy) -> None:
    """F · apply_gram(x) is apply_adjoint(x) far within κ² u, of an inverse that says so."""
    F = gallery.random_with_condition((12, 4), torch.float64, 6).matrix.to(device())
    b = numbered((12, _COLUMNS), torch.float64, 6)
    _, inverse = strategy.least_squares(F.clone(), b)
    if not inverse.has_stable_gram:
        raise NotApplicableError("does not claim it")
    x = numbered((4, _COLUMNS), torch.float64, 7)
    expected = inverse.apply_adjoint(x)
    error = float(torch.linalg.matrix_norm(F @ inverse.apply_gram(x) - expected))
    limit = 1e-8 * float(torch.linalg.matrix_norm(expected))
    require(error <= limit, f"F @ apply_gram(x) is off by {error:.1e} at κ = 1e6, not {limit:.0e}")


def _check_mixed_ranks(strategy: Strategy) -> None:
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


CHECKS: tuple[Check, ...] = (
    *(
        Check(name, _for_every_factor(check))
        for name, check in (
            ("dense", _check_dense),
            ("apply", _check_apply),
            ("apply_adjoint", _check_apply_adjoint),
            ("adjoint identity", _check_adjoint_identity),
            ("apply_gram", _check_apply_gram),
            ("range_complement", _check_range_complement),
            ("null_complement", _check_null_complement),
            ("to_range", _check_to_range),
            ("from_range", _check_from_range),
            ("solve", _check_solve),
            ("solve_adjoint", _check_solve_adjoint),
            ("rank and flags", _check_rank_and_flags),
            ("tensors and rebuilt", _check_rebuilt),
        )
    ),
    Check("triangular structures", _check_triangular_structures),
    Check("tolerances", _check_tolerances),
    Check("forwards", _check_forwards),
    Check("stable gram", _check_stable_gram),
    Check("mixed ranks in a batch", _check_mixed_ranks),
)
