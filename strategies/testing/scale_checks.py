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

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from strategies import operations
from strategies.errors import LinAlgError
from strategies.formulas.domains import GENERAL, POSITIVE_DEFINITE, Domain
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    check_each,
    check_operations,
    close,
    numbered,
    require,
    require_named,
    skip_native,
)
from strategies.testing.problems import Problem, Tensors, doubled, of_inputs, problem, solved

POWERS = {torch.float64: (100, 600), torch.float32: (12, 60)}
"""Of two: the square of the larger number over- or underflows, half as much again does not."""

_EXPONENTS = {
    torch.float64: ((-160, -930), (-900, -60)),
    torch.float32: ((-16, -112), (-100, -10)),
}
"""Of two entries. The product of the first pair underflows, and its reciprocal, the cotangent of a
determinant, overflows; that of the second does neither."""


class _Law(NamedTuple):
    """How one result behaves as inputs are doubled, entry by entry: it is multiplied by 2^d or shifted."""

    degree: Tensor
    shift: Tensor

    @classmethod
    def of(cls, once: Tensor, twice: Tensor) -> _Law:
        ratio = (twice / once).abs().nan_to_num(nan=1.0)
        degree = (2 * ratio.log2()).round().nan_to_num(neginf=0.0) / 2
        is_shifted = ((once * degree.exp2() - twice).abs() > 1e-9 * twice.abs()).any()
        if is_shifted:
            return cls(torch.zeros_like(degree), twice - once)
        return cls(degree, torch.zeros_like(twice))


def _laws_of(
    operation: Operation, inputs: Tensors, scaled: Callable[[Tensors], Tensors]
) -> list[_Law]:
    """How each result behaves as the inputs are scaled by powers of two, here by the first."""
    wide = tuple(map(doubled, inputs))
    once, twice = (
        operation.outputs(operation.function(*tensors, strategy="triangular_solve"))
        for tensors in (wide, scaled(wide))
    )
    return [_Law.of(*pair) for pair in zip(once, twice, strict=True)]


def _spread(powers: Tensor, over: Tensor) -> Tensor:
    return powers.reshape(powers.shape + (1,) * (over.ndim - powers.ndim))


def _times(tensor: Tensor, degree: int | Tensor, powers: Tensor) -> Tensor:
    return times_power_of_two(tensor, degree * _spread(powers, tensor))


def _problems(operation: Operation) -> Iterator[Problem]:
    of_any: tuple[tuple[int, ...], ...] = (2, 2), (5, 3), (3, 5), (3, 4, 2)
    shapes = ((2, 2), (20, 20), (3, 3, 3)) if operation.square else of_any
    for shape, dtype in itertools.product(shapes, DTYPES):
        yield problem(operation.name, shape, dtype, operation.arity)


@check_operations("scales of", _problems)
def require_scaled_answers(strategy: Strategy, asked: Problem) -> None:
    """Require that scaled problems have scaled answers."""
    skip_native(strategy, "whose intermediate results overflow")
    # Of a batch, the first member is small and the last is large.
    A = asked.inputs[0]
    laws = _laws_of(asked.operation, asked.inputs, lambda inputs: (2 * inputs[0], *inputs[1:]))
    most = max(1, *(int(law.degree.abs().max()) for law in laws))
    for largest in POWERS[A.dtype.to_real()]:
        power = min(largest, largest * 3 // 2 // most)
        for members in ([-1, 0, 1],) if A.ndim > 2 else (-1, 1):
            powers = power * torch.tensor(members, dtype=torch.float64, device=A.device)
            _examine_scaled(strategy, asked, laws, powers)


def _examine_scaled(strategy: Strategy, asked: Problem, laws: list[_Law], powers: Tensor) -> None:
    A, *others = asked.inputs
    cotangents = tuple(
        _times(G, -law.degree, powers) for G, law in zip(asked.cotangents, laws, strict=True)
    )
    inputs = (_times(A, 1, powers), *others)
    results, (of_A, *rest) = solved(strategy, asked.operation, inputs, cotangents)
    exponents = ", ".join(str(int(p)) for p in powers.reshape(-1))
    asked.shifted([law.shift * _spread(powers, law.shift) for law in laws]).require_answers(
        tuple(
            _times(result, -law.degree, powers) for result, law in zip(results, laws, strict=True)
        ),
        (_times(of_A, 1, powers), *rest),
        f"A times 2 to the {exponents}, scaled back: ",
    )


@check_each(lambda: _problems(operations.get("lstsq")))
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
    A = asked.inputs[0]
    for pair in _EXPONENTS[A.dtype.to_real()]:
        exponents = torch.tensor(pair, dtype=torch.float64, device=A.device)
        if asked.operation.domain is not GENERAL:
            exponents = exponents / 2  # D is there twice, or A is
        if A.ndim > 2:  # the last of three matrices remains as it is
            exponents = torch.stack([exponents, exponents.flip(0), 0 * exponents])
        try:
            _examine_graded(strategy, asked, exponents)
        except LinAlgError as refusal:
            require_named(refusal, strategy)
            raise NotApplicableError(f"refuses such entries: {refusal}") from None


def _inputs(operation: Operation, batch: tuple[int, ...], dtype: torch.dtype) -> Tensors:
    noise, B = (numbered((*batch, 2, 2), dtype, 62 + i) for i in range(2))
    A = operation.domain.member(noise / 4 + torch.eye(2, dtype=dtype, device=noise.device))
    return (A, B)[: operation.arity]


def _examine_graded(strategy: Strategy, asked: Problem, exponents: Tensor) -> None:
    operation, A = asked.operation, asked.inputs[0]
    graded = partial(_graded, operation.domain)
    dense = _inputs(operation, A.shape[:-2], A.dtype)  # which has no zeros
    units = torch.eye(2, dtype=exponents.dtype, device=exponents.device)
    of_columns = zip(
        *(_laws_of(operation, dense, partial(graded, unit)) for unit in units), strict=True
    )
    degrees, shifts = [], []
    for laws in of_columns:  # of one result, by columns
        degrees.append(_total([law.degree for law in laws], exponents))
        shifts.append(_total([law.shift for law in laws], exponents))
    cotangents = tuple(
        times_power_of_two(G, -degree) for G, degree in zip(asked.cotangents, degrees, strict=True)
    )
    if not all(bool(G.isfinite().all()) for G in cotangents):
        return  # nor does the dtype hold the result
    inputs = graded(exponents, asked.inputs)
    results, gradients = solved(strategy, operation, inputs, cotangents)
    asked.shifted(shifts).require_answers(
        tuple(times_power_of_two(f, -degree) for f, degree in zip(results, degrees, strict=True)),
        graded(exponents, gradients),
        f"entries times 2 to the {exponents.tolist()}, scaled back: ",
    )


def _graded(domain: Domain, exponents: Tensor, tensors: Tensors) -> Tensors:
    """The inputs, or their gradients scaled back, as described above."""
    A, *others = tensors
    rows, columns = exponents.unsqueeze(-1), exponents.unsqueeze(-2)
    if domain is GENERAL:
        return times_power_of_two(A, columns), *others
    if domain is POSITIVE_DEFINITE:
        return times_power_of_two(A, rows + columns), *others
    return tuple(times_power_of_two(tensor, rows) for tensor in tensors)


def _total(of_columns: list[Tensor], exponents: Tensor) -> Tensor:
    """The sum of what belongs to each column, times its exponent."""
    each_one = torch.stack(of_columns, -1)
    *batch, n = exponents.shape
    spread = [1] * (each_one.ndim - exponents.ndim)
    return (each_one * exponents.reshape(*batch, *spread, n)).sum(-1)
