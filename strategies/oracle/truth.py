"""What is certified of a drawn case: value, VJP, JVP and Hessian–vector product, with allowances."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from flint import ctx

from strategies import operations
from strategies.accuracy.stability import LIMIT, Exact, perturbed, with_allowances
from strategies.exact.balls import exact, norm_bound
from strategies.exact.lu import lu_factor_result, lu_result
from strategies.exact.pinv import exact_pinv
from strategies.exact.problem import Formula, Problem, along
from strategies.operations import Operation
from strategies.oracle.draws import Draw
from strategies.oracle.grader import QUANTITIES

PERTURBATIONS = 16
"""Random roundings of the inputs that a divisor is the largest effect of."""

_MOST_ALLOWED = 0.1 / LIMIT
"""Of the norm: with a larger divisor, an error in the first digit would be right."""


def truth(drawn: Draw) -> dict[str, list[list[Exact]]]:
    """Certifies what follows from the inputs: by quantity, for each matrix of the batch its exact parts.

    A quantity is left out where there is nothing to judge: rounding of the inputs may change its first
    digit, the dtype does not hold it, or, at deficient rank, it depends on a convention. That is the
    value and the JVP of LU, and all second derivatives but those of det, whose part across the matrices
    of that rank no formula determines. ArithmeticError if a number cannot be certified, ValueError if the
    operation has no derivative there.
    """
    every = [_of_matrix(drawn, i) for i in range(len(drawn.ranks))]
    return {
        name: [each[name] for each in every]
        for name in QUANTITIES
        if all(_can_be_judged(each.get(name)) for each in every)
    }


def result_of(record: Operation) -> Formula:
    """The exact results of an operation, of LU in the order of rows that the problem gives."""
    return record.exact_result or {"lu": lu_result, "lu_factor": lu_factor_result}[record.name]


def condition(drawn: Draw, index: int) -> float:
    """‖A‖_F ‖A⁺‖_F of one matrix, to two digits; 1 for a zero matrix."""
    (matrix, *_), *_ = _matrices(drawn, index)
    problem = Problem((matrix,), (), drawn.ranks[index])
    if problem.rank == 0:
        return 1.0
    with ctx.workprec(1024):
        held = exact(matrix)
        number = norm_bound(held) * norm_bound(exact_pinv(held, problem.profile))
        return float(f"{float(number):.1e}")


def _of_matrix(drawn: Draw, index: int) -> dict[str, list[Exact]]:
    record = operations.get(drawn.operation)
    inputs, cotangents, tangents = _matrices(drawn, index)
    rank = drawn.ranks[index]
    order = None if drawn.orders is None else drawn.orders[index]
    if drawn.operation == "slogdet" and len(cotangents) == 1:
        cotangents = np.zeros(()), *cotangents
    at = Problem(inputs, cotangents, rank, order)
    directed = Problem(inputs, (*cotangents, *tangents), rank, order)
    dtype = getattr(torch, drawn.dtype)
    moved = perturbed(directed, record, dtype, PERTURBATIONS)
    still = [replace(each, cotangents=each.cotangents[: -len(tangents)]) for each in moved]
    result = result_of(record)
    is_full = rank == min(inputs[0].shape)
    found = {"vjp": with_allowances(at, still, record.exact, dtype)}
    if is_full or not record.pivoted:
        found["value"] = with_allowances(at, still, result, dtype)
        forward = along(result, keeps_rank=record.truncates)
        found["jvp"] = with_allowances(directed, moved, forward, dtype)
    if is_full or not (record.pivoted or record.truncates):
        second = along(record.exact, keeps_rank=False)
        found["hvp"] = with_allowances(directed, moved, second, dtype)
    return found


def _matrices(drawn: Draw, index: int) -> Sequence[tuple[Any, ...]]:
    """Inputs, cotangents and tangents of one matrix, in double precision."""
    at = (index, ...) if drawn.kind == "batched" else ...
    groups = drawn.inputs, drawn.cotangents, drawn.tangents
    return [tuple(a[at].astype(np.result_type(a, np.float64)) for a in group) for group in groups]


def _can_be_judged(parts: list[Exact] | None) -> bool:
    if parts is None or not all(part.is_representable for part in parts):
        return False
    sizes = [float(np.linalg.norm(part.value.high)) for part in parts]
    pairs = zip(parts, sizes, strict=True)
    return all(size == 0 or part.allowed <= _MOST_ALLOWED * size for part, size in pairs)
