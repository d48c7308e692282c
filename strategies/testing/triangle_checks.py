"""Triangles, for `factor` and for the operations that are given them, of every size and magnitude.

Nothing comes between `solve_triangular` or `lu_solve` and the strategy that would scale a matrix.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from strategies import operations
from strategies.factors.pseudo_inverse import Structure
from strategies.linalg import lu_solve, solve_triangular
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing import scale_checks
from strategies.testing.checks import DTYPES, check_each, close, device, numbered, require, sized
from strategies.testing.problems import Problem, of_inputs
from strategies.testing.size_checks import require_right

_STRUCTURES = [structure for structure in Structure if structure.is_triangular]
_COLUMNS = 3

_SIZES = ((1, 1), (5, 5), (33, 33), (70, 70), (1, 4, 4), (2, 3, 5, 5))
_SCALED = ((2, 2), (3, 3, 3))


class _Triangle(NamedTuple):
    dtype: torch.dtype
    shape: tuple[int, ...]
    structure: Structure
    power: int = 0

    def __str__(self) -> str:
        times = f", times 2^{self.power}" if self.power else ""
        return f"{self.structure.value} triangle of {sized(self.shape, self.dtype)}{times}"


def _packed(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Matrices that are well-conditioned, and so are their triangles."""
    n = shape[-1]
    noise = numbered(shape, dtype, 3) / (2 * n)
    return noise + torch.eye(n, dtype=dtype, device=device())


def _triangles() -> Iterator[_Triangle]:
    shapes = ((4, 4), (1, 1), (70, 70), (2, 3, 5, 5))
    yield from itertools.starmap(_Triangle, itertools.product(DTYPES, shapes, _STRUCTURES))
    for dtype, structure in itertools.product(DTYPES, (Structure.LOWER, Structure.UPPER)):
        for power in scale_checks.POWERS[dtype.to_real()]:
            yield _Triangle(dtype, (4, 4), structure, -power)
            yield _Triangle(dtype, (2, 3, 3), structure, power)


@check_each(lambda _: _triangles())
def _triangular_structures(strategy: Strategy, case: _Triangle) -> None:
    """The other triangle belongs to another factor, as in packed LU."""
    packed, scale = _packed(case.shape, case.dtype), 2.0**case.power
    inverse = strategy.factor(packed * scale, case.structure, rtol=0.0, atol=0.0)
    expected = torch.linalg.inv(case.structure.dense(packed))
    close(inverse.dense() * scale, expected, "dense() against torch.linalg.inv")
    require(bool((inverse.rank == packed.shape[-1]).all()), f"rank is {inverse.rank}")
    for k in (1, _COLUMNS):
        b = numbered((*packed.shape[:-1], k), packed.dtype, 4)
        close(inverse.apply(b) * scale, expected @ b, "apply(b) against torch.linalg.inv")
        adjoint = inverse.apply_adjoint(b) * scale
        close(adjoint, expected.mH @ b, "apply_adjoint(b) against torch.linalg.inv")


def _of_triangle(structure: Structure) -> Operation:
    function = partial(solve_triangular, upper=structure.is_upper, unitriangular=structure.is_unit)
    name = f"solve_triangular ({structure.value})"
    return dataclasses.replace(operations.get("solve"), name=name, function=function)


def _of_factors(adjoint: bool) -> Operation:
    """`lu_solve` by the factors of A, which are PyTorch's."""

    def function(A: Tensor, B: Tensor, strategy: Strategy) -> Tensor:
        # cuBLAS loses small complex pivots.
        LU, pivots = (each.to(A.device) for each in torch.linalg.lu_factor(A.cpu()))
        return lu_solve(LU, pivots, B, adjoint=adjoint, strategy=strategy)

    name = "lu_solve (adjoint)" if adjoint else "lu_solve"
    return dataclasses.replace(operations.get("solve"), name=name, function=function)


def _problems(
    of: list[Operation], shapes: tuple[tuple[int, ...], ...], _: Strategy
) -> Iterator[Problem]:
    for operation, shape, dtype in itertools.product(of, shapes, DTYPES):
        B = numbered((*shape[:-1], _COLUMNS), dtype, 5)
        yield of_inputs(operation, (_packed(shape, dtype), B), 6)


_FACTORS = [_of_factors(adjoint) for adjoint in (False, True)]
_SCALABLE = [_of_triangle(structure) for structure in (Structure.LOWER, Structure.UPPER)]
_UNIT = [_of_triangle(structure) for structure in (Structure.UNIT_LOWER, Structure.UNIT_UPPER)]

for _name, _plain, _homogeneous in (
    ("lu_solve", _FACTORS, _FACTORS),
    ("solve_triangular", _SCALABLE + _UNIT, _SCALABLE),
):
    check_each(partial(_problems, _plain, _SIZES), f"sizes of {_name}")(require_right)
    check_each(partial(_problems, _homogeneous, _SCALED), f"scales of {_name}")(
        scale_checks.require_scaled_answers
    )


check_each(
    lambda _: itertools.chain(*map(scale_checks.graded_problems, _SCALABLE)),
    "graded diagonals in solve_triangular",
)(scale_checks.require_graded_answers)
