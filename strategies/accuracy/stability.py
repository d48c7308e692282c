"""The stability ratio: the error of a result or gradient over what rounding the inputs does to it.

With f the exact map from the inputs and cotangents x to the result, u the unit roundoff and δ random
perturbations of the inputs by one rounding (`strategies.exact.problem`),

    ratio = ‖computed − f(x)‖ / max(u ‖f(x)‖, max over δ of ‖f(x + δ) − f(x)‖),

for the whole result, and for each column, whose error may be u ‖f(x)‖ or what δ does to that column. A
mixed stable algorithm returns nearly the exact result of nearly the given input (Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed. 2002, section 1.5): its ratio is a modest multiple of the
dimension, however ill-conditioned the input. The ratio of an algorithm that squares the condition number
κ grows with κ.

One rounding of A is u times the largest entry of each column. That is the backward error of Householder
QR, and of elimination without growth (Higham 2002, theorems 19.4 and 9.3); no LAPACK driver promises a
small one in each row (section 19.4). Where Aᴴ is factored, rows stand for columns. A minimum-norm solution
at deficient rank takes orthogonal transformations from both sides: there the largest of all entries counts.

`LIMIT` is what a strategy's ratio must not exceed anywhere. LAPACK's test programs report a backward
error of 30 roundoffs (`strategies.accuracy.measures.PASS_BELOW`). Here the divisor is the largest of a few
random samples and not the supremum, which is larger by a factor of about √n.

f is evaluated in ball arithmetic, also at the perturbed inputs, which are never rounded. At deficient
rank the perturbations keep the rank, except those of det, which is smooth there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strategies import operations
from strategies.accuracy.certified import ScaledPair, as_array, times_power_of_two
from strategies.accuracy.reference import checked, row_order
from strategies.autograd.half_precision import HALF
from strategies.formulas.amplification import unit_roundoff

if TYPE_CHECKING:
    from strategies.exact.problem import Formula, Perturbed, Problem
    from strategies.operations import Operation

LIMIT = 100.0
"""The largest stability ratio of a strategy that may be used."""

_ENOUGH_BITS = 1024  # tell the determinant of any perturbed matrix of moderate size from zero

PERTURBATIONS = 4
"""How many random perturbations of the inputs a reference tries, if not told otherwise."""


class Ratio(NamedTuple):
    """A stability ratio; infinite where what was computed is not finite or without any digit.

    Attributes:
        normwise: of the Frobenius norms.
        columnwise: the largest of the columns, by their 2-norms.
    """

    normwise: float
    columnwise: float


@dataclass(frozen=True)
class Exact:
    """One exact matrix, and how far the rounding of the inputs moves it.

    Attributes:
        value: the matrix, a vector or a number being a matrix, too.
        radius: a proven bound on the error of it, relative to its norm.
        allowed: by how much an error of ratio 1 moves it, relative to 2^value.exponent.
        allowed_columns: the same of every column.
        dtype: of the computation that is judged.
        by_rows: rows stand for columns.
    """

    value: ScaledPair
    radius: float
    allowed: float
    allowed_columns: NDArray[np.float64]
    dtype: torch.dtype
    by_rows: bool

    @property
    def is_representable(self) -> bool:
        """Whether the dtype holds every entry, also of what an error of ratio 1 makes of it."""
        largest = math.frexp(torch.finfo(self.dtype).max)[1]
        return int(self.value.exponent) + math.log2(max(1.0, self.allowed)) <= largest

    def ratio(self, computed: Tensor) -> Ratio:
        """The stability ratio of what was computed in place of this matrix."""
        values = as_array(computed).reshape(self.value.high.shape)
        with np.errstate(all="ignore"):
            error = self.value.difference(values)
            of_columns = _norm(error, axis=int(self.by_rows))
        normwise = _quotient(float(_norm(error)), self.allowed)
        return Ratio(normwise, max(map(_quotient, of_columns, self.allowed_columns), default=0.0))


def references(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    rank: int | None = None,
    perturbations: int = PERTURBATIONS,
) -> tuple[list[Exact], list[Exact]]:
    """The exact results and the exact gradients of one matrix, with what rounding does to them.

    Args:
        operation: a name of `strategies.operations.names()`.
        inputs: A, (m, n), and B where the operation takes one.
        cotangents: one for each differentiable output.
        rank: the exact rank of A; None is full.
        perturbations: how many are tried.

    Returns:
        The results (none where the operation has no exact ones), and a gradient for each input.

    Raises:
        ValueError: the rank is another one.
        ArithmeticError: the precision limit was reached.

    Example:
        >>> A, G = torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.ones(2, 2)
        >>> results, (gradient,) = references("inv", (A,), (G,))
        >>> gradient.ratio(torch.tensor([[-0.25, -0.125], [-0.125, -0.0625]]))
        Ratio(normwise=0.0, columnwise=0.0)
    """
    from strategies.exact.problem import Problem

    record, matrix = operations.get(operation), inputs[0]
    cotangents = checked(record, inputs, cotangents, rank)
    arrays = [as_array(tensor) for tensor in (*inputs, *cotangents)]
    rank = min(matrix.shape) if rank is None else rank
    order = None
    if record.pivoted:
        wide = matrix.detach().float() if matrix.dtype in HALF else matrix.detach()
        order = row_order(torch.linalg.lu_factor_ex(wide)[1], matrix.shape, rank)
    given, asked = tuple(arrays[: record.arity]), tuple(arrays[record.arity :])
    problem = Problem(given, asked, rank, order)
    moved = perturbed(problem, record, matrix.dtype, perturbations)
    results = []
    if record.exact_result:
        results = with_allowances(problem, moved, record.exact_result, matrix.dtype)
    return results, with_allowances(problem, moved, record.exact, matrix.dtype)


def perturbed(
    problem: Problem, record: Operation, dtype: torch.dtype, count: int
) -> list[Perturbed]:
    """The problem with inputs and cotangents moved by one rounding, in `count` random directions."""
    from strategies.exact.problem import Perturbed

    m, n = problem.matrix.shape
    power = math.frexp(unit_roundoff(dtype))[1] - 1
    axis: int | None = 0
    if record.truncates:
        axis = None if problem.rank < min(m, n) else int(m < n)
    moved = [Perturbed(**vars(problem), power=power, seed=i, axis=axis) for i in range(count)]
    if record.truncates or record.pivoted or problem.rank == min(m, n):
        return moved
    # Smooth at every rank: no perturbation need keep it, unless zeros do.
    return [_of_full_rank(each) or each for each in moved]


def _of_full_rank(problem: Perturbed) -> Perturbed | None:
    """The problem without its declared rank, if the perturbed matrix is nonsingular."""
    from flint import ctx

    full = replace(problem, rank=len(problem.matrix))
    with ctx.workprec(_ENOUGH_BITS):
        return None if full.operands[0].det().contains(0) else full


def with_allowances(
    problem: Problem, moved: Sequence[Perturbed], exact: Formula, dtype: torch.dtype
) -> list[Exact]:
    """What a formula gives, each with the most that it differs at the perturbed problems."""
    from strategies.accuracy.evaluation import certify

    certified = certify(problem, exact)
    others = [certify(each, exact).parts for each in moved]
    m, n = problem.matrix.shape
    u, digits = unit_roundoff(dtype), 1 - math.frexp(torch.finfo(dtype).eps)[1]
    found = []
    for value, *of_moved in zip(certified.parts, *others, strict=True):
        # What is shaped as A or its adjoint.
        by_rows = moved[0].axis == 1 and sorted(value.high.shape) == [m, n]
        # What underflows is wrong by as much, whatever the algorithm; what is far below, by any amount.
        with np.errstate(over="ignore"):
            smallest = float(torch.finfo(dtype).smallest_normal)
            least = np.full(value.high.shape, np.ldexp(smallest, -value.exponent - digits))
        differences = [*(_difference(other, value) for other in of_moved), least]
        rounding = u * float(_norm(value.high))
        allowed = max(rounding, *(float(_norm(difference)) for difference in differences))
        columns = [_norm(difference, axis=int(by_rows)) for difference in differences]
        of_columns = np.maximum(np.max(columns, axis=0), rounding)
        found.append(Exact(value, certified.radius, allowed, of_columns, dtype, by_rows))
    return found


def _quotient(error: float, allowed: float) -> float:
    if not math.isfinite(error):
        return math.inf
    return float(error) / float(allowed) if allowed else math.inf if error else 0.0


def _difference(one: ScaledPair, other: ScaledPair) -> NDArray[Any]:
    """One minus the other, relative to 2^other.exponent."""
    shift = one.exponent - other.exponent
    with np.errstate(all="ignore"):
        high = times_power_of_two(one.high, shift) - other.high
        return np.asarray(high + (times_power_of_two(one.low, shift) - other.low))


def _norm(array: NDArray[Any], axis: int | None = None) -> Any:
    """The 2-norm, of columns if the axis is 0; no squares leave the range."""
    exponent = np.frexp(abs(array).max(axis, keepdims=True, initial=0.0))[1]
    norms = np.linalg.norm(times_power_of_two(array, -exponent), axis=axis)
    return np.ldexp(norms, exponent.reshape(norms.shape))
