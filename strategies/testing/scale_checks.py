"""Matrices of any magnitude: values and gradients are those of A, times powers of two.

A result f is homogeneous: f(sA) = s^d f(A), with d = −1 for an inverse, 1 for U and 0 for the L beside it,
1/2 for a Cholesky factor; log|det| moves by log s^n. With the cotangent times s^−d the loss ⟨G, f⟩ does
not depend on s, so that Ā is that of A divided by s, and B̄ is the same.

So it is of diagonal matrices whose entries are far apart, whose norm may be near one while a product of
entries under- or overflows. With D diagonal, of powers of two, results of A D are those of A times powers
of two, entry by entry. So they are of D A D where A is Hermitian, and of D A, with D B beside it, where A
is a triangular factor. The matrices are diagonal since orthogonal factors of others are accurate relative
to the norm only.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Self

import torch
from torch import Tensor

from strategies import operations
from strategies.errors import LinAlgError
from strategies.formulas.domains import GENERAL, POSITIVE_DEFINITE, Domain
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    NotApplicableError,
    check_each,
    check_operations,
    close,
    numbered,
    require,
    require_named,
    skip_native,
)
from strategies.testing.problems import Problem, Tensors, doubled, of_inputs, problems, solved

POWERS = {torch.float64: (100, 600), torch.float32: (12, 60)}
"""Of two: the square of the larger number over- or underflows, half as much again does not."""

_EXPONENTS = {torch.float64: ((-160, -930), (-900, -60)), torch.float32: ((-16, -112), (-100, -10))}
"""Of two entries. The product of the first pair underflows, and its reciprocal, the cotangent of a
determinant, overflows; that of the second does neither."""


class _Law(NamedTuple):
    """How one result behaves as inputs are doubled, entry by entry: it is multiplied by 2^d or shifted."""

    degree: Tensor
    shift: Tensor

    @classmethod
    def of(cls, once: Tensor, twice: Tensor) -> Self:
        ratio = (twice / once).abs().nan_to_num(nan=1.0)
        degree = (2 * ratio.log2()).round().nan_to_num(neginf=0.0) / 2
        is_shifted = ((once * degree.exp2() - twice).abs() > 1e-9 * twice.abs()).any()
        if is_shifted:
            return cls(torch.zeros_like(degree), twice - once)
        return cls(degree, torch.zeros_like(twice))


Scaling = Callable[[Tensor, Tensors], Tensors]
"""Inputs times 2 to the exponents, (..., k), or their gradients scaled back."""


def _laws_of(
    operation: Operation, inputs: Tensors, scaling: Scaling, exponents: Tensor
) -> list[_Law]:
    """How each result behaves as the inputs are scaled by these exponents."""
    wide = tuple(map(doubled, inputs))
    once, twice = (
        operation.outputs(operation.function(*tensors, strategy="triangular_solve"))
        for tensors in (wide, scaling(exponents, wide))
    )
    return [_Law.of(*pair) for pair in zip(once, twice, strict=True)]


def _total(of_columns: Sequence[_Law], exponents: Tensor) -> _Law:
    """The sum of the laws that belong to each of k columns, times its exponent."""
    degrees, shifts = (torch.stack(parts, -1) for parts in zip(*of_columns, strict=True))
    *batch, k = exponents.shape
    spread = exponents.reshape(*batch, *[1] * (degrees.ndim - exponents.ndim), k)
    return _Law((degrees * spread).sum(-1), (shifts * spread).sum(-1))


def _require_scaled(
    strategy: Strategy, asked: Problem, laws: list[_Law], scaling: Scaling, exponents: Tensor
) -> None:
    pairs = zip(asked.cotangents, laws, strict=True)
    cotangents = tuple(times_power_of_two(G, -law.degree) for G, law in pairs)
    if not all(bool(G.isfinite().all()) for G in cotangents):
        return  # nor does the dtype hold the result
    inputs = scaling(exponents, asked.inputs)
    results, gradients = solved(strategy, asked.operation, inputs, cotangents)
    pairs = zip(asked.results, laws, strict=True)
    shifted = tuple(f + law.shift.to(f.dtype) for f, law in pairs)
    replace(asked, results=shifted).require_answers(
        tuple(times_power_of_two(f, -law.degree) for f, law in zip(results, laws, strict=True)),
        scaling(exponents, gradients),
        f"entries times 2 to the {exponents.tolist()}, scaled back: ",
    )


def _all_entries(exponents: Tensor, tensors: Tensors) -> Tensors:
    A, *others = tensors
    return times_power_of_two(A, exponents.unsqueeze(-1)), *others


_problems = partial(
    problems, square=((2, 2), (20, 20), (3, 3, 3)), other=((2, 2), (5, 3), (3, 5), (3, 4, 2))
)


@check_operations("scales of", _problems)
def require_scaled_answers(strategy: Strategy, asked: Problem) -> None:
    """Require that scaled problems have scaled answers."""
    skip_native(strategy, "whose intermediate results overflow")
    # Of a batch, the first member is small and the last is large.
    A = asked.inputs[0]
    one = torch.ones(1, dtype=torch.float64, device=A.device)
    laws = _laws_of(asked.operation, asked.inputs, _all_entries, one)
    most = max(1, *(int(law.degree.abs().max()) for law in laws))
    for largest in POWERS[A.dtype.to_real()]:
        power = min(largest, largest * 3 // 2 // most)
        for members in ([[-1], [0], [1]],) if A.ndim > 2 else ([-1], [1]):
            exponents = power * torch.tensor(members, dtype=torch.float64, device=A.device)
            at = [_total([law], exponents) for law in laws]
            _require_scaled(strategy, asked, at, _all_entries, exponents)


@check_each(lambda _: _problems(operations.get("lstsq")))
def _scales_of_factors(strategy: Strategy, asked: Problem) -> None:
    """What `factor` returns, too, for magnitudes whose squares a number can hold."""
    F, b = asked.inputs
    moderate = POWERS[F.dtype.to_real()][0]
    x = b[..., : F.shape[-1], :] if F.shape[-2] > F.shape[-1] else F.mH @ b
    plain = strategy.factor(F.clone())
    for power in (-moderate, moderate):
        inverse = strategy.factor(F * 2.0**power)
        for what, found, expected in (
            ("dense()", inverse.dense(), plain.dense()),
            ("apply(b)", inverse.apply(b), plain.apply(b)),
            ("apply_adjoint(x)", inverse.apply_adjoint(x), plain.apply_adjoint(x)),
        ):
            where = f"{what} of F times 2^{power}, scaled back, against that of F"
            close(found * 2.0**power, expected, where)
        ranks = inverse.rank.tolist(), plain.rank.tolist()
        require(ranks[0] == ranks[1], f"the rank of F times 2^{power} is {ranks[0]}")


def graded_problems(operation: Operation) -> Iterator[Problem]:
    """Problems of diagonal matrices of two rows."""
    for batch, dtype in itertools.product(((), (3,)), (torch.float64, torch.complex64)):
        A, *others = _inputs(operation, batch, dtype)
        diagonal = torch.diag_embed(A.diagonal(dim1=-2, dim2=-1))
        yield of_inputs(operation, (diagonal, *others), 61)


@check_operations("graded diagonals in", graded_problems, lambda operation: not operation.truncates)
def require_graded_answers(strategy: Strategy, asked: Problem) -> None:
    """Require that graded problems have graded answers, or are refused.

    Operations that truncate have none: the smaller entry is cut off.
    """
    skip_native(strategy, "whose intermediate results overflow")
    A, scaling = asked.inputs[0], partial(_graded, asked.operation.domain)
    dense = _inputs(asked.operation, A.shape[:-2], A.dtype)  # which has no zeros
    for pair in _EXPONENTS[A.dtype.to_real()]:
        exponents = torch.tensor(pair, dtype=torch.float64, device=A.device)
        if asked.operation.domain is not GENERAL:
            exponents = exponents / 2  # D is there twice, or A is
        if A.ndim > 2:  # the last of three matrices remains as it is
            exponents = torch.stack([exponents, exponents.flip(0), 0 * exponents])
        try:
            units = torch.eye(2, dtype=exponents.dtype, device=A.device)
            by_column = (_laws_of(asked.operation, dense, scaling, unit) for unit in units)
            laws = [_total(of_columns, exponents) for of_columns in zip(*by_column, strict=True)]
            _require_scaled(strategy, asked, laws, scaling, exponents)
        except LinAlgError as refusal:
            require_named(refusal, strategy)
            raise NotApplicableError(f"refuses such entries: {refusal}") from None


def _inputs(operation: Operation, batch: tuple[int, ...], dtype: torch.dtype) -> Tensors:
    noise, B = (numbered((*batch, 2, 2), dtype, 62 + i) for i in range(2))
    A = operation.domain.member(noise / 4 + torch.eye(2, dtype=dtype, device=noise.device))
    return (A, B)[: operation.arity]


def _graded(domain: Domain, exponents: Tensor, tensors: Tensors) -> Tensors:
    """The inputs, or their gradients scaled back, as described above."""
    A, *others = tensors
    rows, columns = exponents.unsqueeze(-1), exponents.unsqueeze(-2)
    if domain is GENERAL:
        return times_power_of_two(A, columns), *others
    if domain is POSITIVE_DEFINITE:
        return times_power_of_two(A, rows + columns), *others
    return tuple(times_power_of_two(tensor, rows) for tensor in tensors)
