"""Diagonal matrices whose entries are far apart: values and gradients are those of A, scaled.

The norm may be near one while a product of entries under- or overflows. With D diagonal, of powers of
two, results of A D are those of A times powers of two, entry by entry. So they are of D A D where A is
Hermitian, and of D A, with D B beside it, where A is a triangular factor. The matrices are diagonal since
orthogonal factors of others are accurate relative to the norm only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial

import torch
from torch import Tensor

from strategies import operations
from strategies.errors import LinAlgError
from strategies.formulas.domains import GENERAL, POSITIVE_DEFINITE, Domain
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    Check,
    NotApplicableError,
    each,
    numbered,
    require_named,
    skip_native,
)
from strategies.testing.problems import Problem, Tensors, of_inputs, solved
from strategies.testing.scale_checks import laws_of

_EXPONENTS = {
    torch.float64: ((-160, -930), (-900, -60)),
    torch.float32: ((-16, -112), (-100, -10)),
}
"""Of two entries. The product of the first pair underflows, and its reciprocal, the cotangent of a
determinant, overflows; that of the second does neither."""


def check_grading(of: Iterable[Operation], strategy: Strategy) -> None:
    """Require that graded problems have graded answers, or are refused."""
    skip_native(strategy, "whose intermediate results overflow")

    def examine(asked: Problem) -> None:
        A = asked.inputs[0]
        for pair in _EXPONENTS[A.dtype.to_real()]:
            exponents = torch.tensor(pair, dtype=torch.float64, device=A.device)
            if asked.operation.domain is not GENERAL:
                exponents = exponents / 2  # D is there twice, or A is
            if A.ndim > 2:  # the last of three matrices remains as it is
                exponents = torch.stack([exponents, exponents.flip(0), 0 * exponents])
            try:
                _examine(strategy, asked, exponents)
            except LinAlgError as refusal:
                require_named(refusal, strategy)
                raise NotApplicableError(f"refuses such entries: {refusal}") from None

    cases = itertools.product(of, ((), (3,)), (torch.float64, torch.complex64))
    each((_problem(*case) for case in cases), examine)


def _problem(operation: Operation, batch: tuple[int, ...], dtype: torch.dtype) -> Problem:
    A, *others = _inputs(operation, batch, dtype)
    diagonal = torch.diag_embed(A.diagonal(dim1=-2, dim2=-1))
    return of_inputs(operation, (diagonal, *others), 61)


def _inputs(operation: Operation, batch: tuple[int, ...], dtype: torch.dtype) -> Tensors:
    noise, B = (numbered((*batch, 2, 2), dtype, 62 + i) for i in range(2))
    A = operation.domain.member(noise / 4 + torch.eye(2, dtype=dtype, device=noise.device))
    return (A, B)[: operation.arity]


def _examine(strategy: Strategy, asked: Problem, exponents: Tensor) -> None:
    operation, A = asked.operation, asked.inputs[0]
    graded = partial(_graded, operation.domain)
    dense = _inputs(operation, A.shape[:-2], A.dtype)  # which has no zeros
    units = torch.eye(2, dtype=exponents.dtype, device=exponents.device)
    of_columns = zip(
        *(laws_of(operation, dense, partial(graded, unit)) for unit in units), strict=True
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


def checks() -> Iterator[Check]:
    """The checks of the operations that need no rank: the smaller entry is none where that is cut off."""
    for operation in map(operations.get, operations.names()):
        if not operation.truncates:
            check = partial(check_grading, [operation])
            yield Check(f"graded diagonals in {operation.name}", check)
