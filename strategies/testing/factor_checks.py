"""Every method of what `factor` returns, against the identities that define it.

F⁺ as a matrix is compared with PyTorch's; every other method is then compared with the product that it
stands for. The matrices have exact ranks and a condition number κ ≤ 10.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy import gallery
from strategies.errors import LinAlgError
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    Shaped,
    check,
    check_each,
    close,
    device,
    is_number,
    numbered,
    require,
    shaped,
    sized,
)
from strategies.testing.problems import copied, matrices

_COLUMNS = 3


class _Factored(NamedTuple):
    """A batch of matrices F of equal rank, what the strategy made of it, and F⁺ as a matrix."""

    what: str
    F: Tensor
    true_rank: int
    inverse: PseudoInverse
    dense: Tensor
    columns: int = _COLUMNS

    def __str__(self) -> str:
        return f"{self.what} {sized(self.F.shape, self.F.dtype)} of rank {self.true_rank}"

    @property
    def b(self) -> Tensor:
        return numbered((*self.F.shape[:-1], self.columns), self.F.dtype, 1)

    @property
    def x(self) -> Tensor:
        return numbered((*self.dense.shape[:-1], self.columns), self.F.dtype, 2)

    @property
    def adjoint(self) -> Self:
        return self._replace(
            what=f"the adjoint of {self.what}",
            F=self.F.mH,
            inverse=self.inverse.adjoint,
            dense=self.dense.mH,
        )


@functools.cache
def _specimens() -> list[gallery.Specimen]:
    """Tall, wide and square, full rank and deficient, every dtype, two batch dimensions or none."""
    found = []
    shapes, batches = ((6, 3), (3, 6), (4, 4)), ((), (1,), (2, 3))
    for dtype, shape, batch in itertools.product(DTYPES, shapes, batches):
        found.append(gallery.random_with_condition(shape, dtype, 0.5, batch))
        found.append(gallery.random_with_rank(shape, dtype, 2, batch))
    return found


def _factored(strategy: Strategy) -> Iterator[_Factored]:
    for specimen in _specimens():
        F, rank = specimen.matrix.to(device()), specimen.rank
        if strategy.requires_full_rank and rank < min(F.shape[-2:]):
            continue
        for what, inverse in _ways(strategy, F, rank):
            case = _Factored(what, F, rank, inverse, inverse.dense())
            yield case
            yield case.adjoint


def _ways(strategy: Strategy, F: Tensor, rank: int) -> Iterator[tuple[str, PseudoInverse]]:
    """Everything of the strategy that returns factors of F, by name."""
    m, n = F.shape[-2:]
    yield "factor of", strategy.factor(F.clone())
    if m == n == rank:
        yield "factor_square of", strategy.factor_square(F.clone())
    for operation in map(operations.get, operations.measured()):
        name = f"{operation.stem}_forward"
        is_taken = (m == n or not operation.square) and (
            rank == min(m, n) or not operation.needs_full_rank
        )
        if is_taken and hasattr(strategy, name):
            b = numbered((*F.shape[:-1], 2), F.dtype, 3)
            found = getattr(strategy, name)(*(F.clone(), b)[: operation.arity])
            if found is not NotImplemented:
                yield f"the factors from {name} of", found[1]


@check_each(_factored)
def _dense(_: Strategy, case: _Factored) -> None:
    m, n = case.F.shape[-2:]
    require(case.dense.shape == (*case.F.shape[:-2], n, m), f"shape {tuple(case.dense.shape)}")
    close(case.inverse.dense(), torch.linalg.pinv(case.F), "dense() against torch.linalg.pinv")


_IDENTITIES = (
    *("apply", "apply_adjoint", "adjoint identity", "apply_gram", "range_complement"),
    *("null_complement", "to_range", "from_range", "solve", "solve_adjoint"),
)


def _both_sides(identity: str, case: _Factored) -> tuple[Tensor, Tensor, str]:
    """What should be equal, and in words."""
    F, X, inverse, b, x = case.F, case.dense, case.inverse, case.b, case.x
    match identity:
        case "apply":
            return inverse.apply(b), X @ b, "apply(b) against dense() @ b"
        case "apply_adjoint":
            return inverse.apply_adjoint(x), X.mH @ x, "apply_adjoint(x) against dense().mH @ x"
        case "adjoint identity":
            left, right = x.mH @ inverse.apply(b), inverse.apply_adjoint(x).mH @ b
            words = "⟨x, apply(b)⟩ against ⟨apply_adjoint(x), b⟩"
            return left.sum((-2, -1)), right.sum((-2, -1)), words
        case "apply_gram":
            return inverse.apply_gram(x), X @ (X.mH @ x), "apply_gram(x) against F⁺ F⁺ᴴ x"
        case "range_complement":
            sum_of_parts = inverse.range_complement(b) + F @ (X @ b)
            return sum_of_parts, b, "range_complement(b) + F F⁺ b against b"
        case "null_complement":
            sum_of_parts = inverse.null_complement(x) + X @ (F @ x)
            return sum_of_parts, x, "null_complement(x) + F⁺ F x against x"
        case "to_range":
            c = inverse.to_range(b)
            return inverse.to_range(inverse.from_range(c)), c, "to_range(from_range(c)) against c"
        case "from_range":
            projected = inverse.from_range(inverse.to_range(b))
            return projected, F @ (X @ b), "from_range(to_range(b)) against F F⁺ b"
        case "solve":
            return inverse.solve(inverse.to_range(b)), X @ b, "solve(to_range(b)) against F⁺ b"
        case _:  # solve_adjoint
            found = inverse.from_range(inverse.solve_adjoint(x))
            return found, X.mH @ x, "from_range(solve_adjoint(x)) against F⁺ᴴ x"


def _require_identity(name: str, _: Strategy, case: _Factored) -> None:
    close(*_both_sides(name, case))


for _name in _IDENTITIES:
    check_each(_factored, _name)(functools.partial(_require_identity, _name))


@check_each(_factored)
def _rank_and_flags(_: Strategy, case: _Factored) -> None:
    m, n = case.F.shape[-2:]
    rank, true_rank = case.inverse.rank, case.true_rank
    is_of_batch = rank.shape == case.F.shape[:-2] and rank.dtype == torch.int64
    message = f"rank is {rank.dtype} of shape {tuple(rank.shape)}, not int64 of the batch shape"
    require(is_of_batch, message)
    require(bool((rank == true_rank).all()), f"rank is {rank.tolist()}, not {true_rank}")
    flags = (case.inverse.full_column_rank, case.inverse.full_row_rank)
    expected = (true_rank == n, true_rank == m)
    message = f"(full_column_rank, full_row_rank) is {flags}, but it is {expected}"
    require(flags == expected, message)


@check_each(_factored)
def _tensors_and_rebuilt(_: Strategy, case: _Factored) -> None:
    """Autograd keeps only `tensors()`; what is held elsewhere would outlive the graph, or miss it."""
    inverse = case.inverse
    copies = [copied(tensor) for tensor in inverse.tensors()]
    same = inverse.rebuilt(iter(copies), case.F)
    for what, found, expected in (
        ("dense", same.dense(), inverse.dense()),
        ("apply", same.apply(case.b), inverse.apply(case.b)),
    ):
        require(torch.equal(found, expected), f"rebuilt over copies, {what}() differs")
    blanks = (torch.full_like(t, torch.nan) if is_number(t) else t for t in copies)
    blank = inverse.rebuilt(blanks, torch.full_like(case.F, torch.nan))
    try:
        dense = blank.dense()
    except LinAlgError:
        return  # it factors again, and LAPACK takes no NaN
    message = (
        "rebuilt over NaN, dense() still has numbers: they come from a tensor that tensors() lacks"
    )
    require(bool(dense.isnan().all()), message)


_LARGER = (
    *((1, 1), (2, 1), (1, 7), (5, 4), (4, 5), (40, 3), (3, 40), (33, 33), (70, 70)),
    *((130, 70), (70, 130), (17, 9, 9), (2, 40, 5)),
)


@check_each(lambda _: shaped(_LARGER, DTYPES))
def _larger_factors(strategy: Strategy, drawn: Shaped) -> None:
    """All of the identities at every size, and for one vector, few and many."""
    F = matrices(drawn.shape, drawn.dtype)
    rank = min(F.shape[-2:])
    inverse = strategy.factor(F.clone())
    dense = torch.linalg.pinv(F)
    for k in (1, 2, 40):
        case = _Factored("factor of", F, rank, inverse, dense, k)
        close(inverse.dense(), dense, f"dense() of {case} against torch.linalg.pinv")
        require(bool((inverse.rank == rank).all()), f"rank of {case} is {inverse.rank}")
        for both in (case, case.adjoint):
            for name in _IDENTITIES:
                found, due, words = _both_sides(name, both)
                # Inner products of long vectors cancel.
                close(found, due, f"{both}, k={k}: {words}", loosened=10)


@check
def _stable_gram(strategy: Strategy) -> None:
    """F · apply_gram(x) is apply_adjoint(x) far within κ² u, of an inverse that says so."""
    F = gallery.random_with_condition((12, 4), torch.float64, 6).matrix.to(device())
    x = numbered((4, _COLUMNS), torch.float64, 7)
    claiming = [way for way in _ways(strategy, F, 4) if way[1].has_stable_gram]
    if not claiming:
        raise NotApplicableError("does not claim it")
    for what, inverse in claiming:
        expected = inverse.apply_adjoint(x)
        error = float(torch.linalg.matrix_norm(F @ inverse.apply_gram(x) - expected))
        limit = 1e-8 * float(torch.linalg.matrix_norm(expected))
        both = f"{what} {sized(F.shape, F.dtype)}: F @ apply_gram(x) against apply_adjoint(x)"
        require(error <= limit, f"{both} is off by {error:.1e} at κ = 1e6, not {limit:.0e}")
