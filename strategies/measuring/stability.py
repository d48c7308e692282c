"""How stable the strategies are in one case: results and gradients, and whether they repeat."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy.certified import as_array
from strategies.accuracy.stability import PERTURBATIONS, Exact, references
from strategies.measuring import measurement
from strategies.measuring.case import Case
from strategies.measuring.measurement import Cell, Measurement, Stability
from strategies.measuring.workload import forward
from strategies.policy import BASELINE
from strategies.policy.schema import LIMIT, WORST_RATIO

MANY = 32
"""Perturbations of the inputs where a ratio is near the limit."""

Tensors = tuple[Tensor, ...]

Computation = Callable[[Case], tuple[Tensors, Tensors]]
"""From a case to its results and gradients; RuntimeError refuses it."""


def measure_stability(
    case: Case, names: Sequence[str], others: Mapping[str, Computation] = {}
) -> Cell:
    """Runs strategies on one case and compares them with exact results and gradients.

    Names are those of strategies, or "auto"; `others` compute the same, as another library.
    Of a batch the first and the last matrix are compared. A strategy that refuses the input is not
    applicable. One whose second call gives other bits than its first has the largest ratio there is.
    Where a ratio is near the limit, or none is below it, `MANY` perturbations are tried: by chance, a few
    may do too little.

    Raises:
        ValueError: the operation has no gradient in the case, or one that the dtype cannot hold.
        ArithmeticError: the exact result cannot be told from zero.

    Example:
        >>> cell = measure_stability(Case.parse("pinv 9x4 cond=1e6 G=gram"), ["qr_pinv"])
        >>> cell.get("qr_pinv").stability.worst < 10
        True
    """
    judged: dict[str, Computation]
    judged = {name: functools.partial(_computed, name=name) for name in names} | {**others}

    def measured(perturbations: int) -> Cell:
        exact = _references(case, perturbations)
        return Cell(case, tuple(_measured(case, *each, exact) for each in judged.items()))

    cell = measured(PERTURBATIONS)
    return measured(MANY) if _is_doubtful(cell) else cell


def _is_doubtful(cell: Cell) -> bool:
    """Whether a ratio is near the limit, or none is below it, as where the reference is to blame."""
    ratios = [found.stability.worst for found in cell if found.stability is not None]
    near = any(LIMIT / 4 < ratio < 1000 * LIMIT for ratio in ratios)
    return near or LIMIT < min(ratios, default=0.0) < WORST_RATIO


def judged_cells(
    cases: Iterable[Case], names: Sequence[str], others: Mapping[str, Computation] = {}
) -> Iterator[Cell]:
    """`measure_stability` of every case in which there is something exact to compare with."""
    for case in cases:
        try:
            _references(case, PERTURBATIONS)
        except (ValueError, ArithmeticError):
            continue
        # Out there, or an error of a strategy would take its case from the evidence.
        yield measure_stability(case, names, others)


@functools.lru_cache(maxsize=2)
def _references(case: Case, perturbations: int) -> list[tuple[list[Exact], list[Exact]]]:
    # The shapes of the outputs, from a matrix that no strategy refuses.
    well_posed = replace(case, matrix=None, rank=None, log10_cond=None, scale=0)
    inputs, cotangents = case.inputs(), case.cotangents(forward(well_posed, BASELINE))
    found = []
    for index in _checked(case):
        given, asked = ([t.detach()[index] for t in tensors] for tensors in (inputs, cotangents))
        results, gradients = references(
            case.operation, given, asked, rank=case.known_rank, perturbations=perturbations
        )
        if not all(each.is_representable for each in (*results, *gradients)):
            raise ValueError(f"{case}: {case.dtype_name} cannot hold the result or its gradient")
        found.append((results, gradients))
    return found


def _checked(case: Case) -> Sequence[int | tuple[()]]:
    return [0, -1][: case.batch] if case.batch else [()]


def _measured(
    case: Case, name: str, compute: Computation, exact: list[tuple[list[Exact], list[Exact]]]
) -> Measurement:
    try:
        one, again = compute(case), compute(case)
    except RuntimeError as error:
        return measurement.without_result(name, error, refuses=True)
    if _bits(one) != _bits(again):
        stability = Stability(*[WORST_RATIO] * 4)
        return Measurement(name, stability=stability, note="identical calls give different results")
    worst: list[float] = []
    for i, side in enumerate(one):
        ratios = [
            each.ratio(computed[index])
            for index, part in zip(_checked(case), exact, strict=True)
            for each, computed in zip(part[i], side, strict=False)
        ]
        largest = (max((ratio[j] for ratio in ratios), default=0.0) for j in range(2))
        worst += [min(value, WORST_RATIO) for value in largest]
    return Measurement(name, stability=Stability(*worst))


def _computed(case: Case, name: str) -> tuple[Tensors, Tensors]:
    record, inputs = operations.get(case.operation), case.inputs()
    outputs = record.outputs(record.function(*inputs, strategy=name))
    gradients = torch.autograd.grad(outputs, inputs, case.cotangents(outputs))
    return tuple(output.detach() for output in outputs), record.defined(gradients)


def _bits(found: tuple[Tensors, Tensors]) -> list[bytes]:
    return [as_array(each).tobytes() for side in found for each in side]
