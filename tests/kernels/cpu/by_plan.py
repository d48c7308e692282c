"""What a plan computes, and its operands; exact gradients to compare with."""

import itertools

import pytest
import torch
from comparison import drawn
from torch.utils._pytree import tree_leaves

from strategies import operations
from strategies.accuracy import gradient
from strategies.kernels.cpu.library import DTYPES
from strategies.kernels.cpu.plans import plan
from strategies.kernels.cpu.problem import Problem
from strategies.kernels.cpu.specs import SPECS

SQUARE = ((1, 1), (2, 2), (5, 5), (33, 33))
ANY = (*SQUARE, (9, 4), (3, 1), (4, 9), (1, 3), (40, 3), (6, 9))
OF_ANY_SHAPE = {
    "factors": ("lu_factor", "lu", "pinv", "lstsq"),
    "packs": ("lu_factor", "pinv"),
    "cod": ("pinv", "lstsq"),
    "svd": ("pinv", "lstsq"),
}
SHAPES = {(holds, name): ANY for holds, names in OF_ANY_SHAPE.items() for name in names}
SHAPES["packs", "lstsq"] = (*SQUARE, (9, 4), (3, 1), (40, 7))
EVERY = [
    (holds, operation)
    for holds, specs in SPECS.items()
    for operation, spec in specs.items()
    if (operation in operations.names() and spec(Problem(5, 5, 1, False, torch.float64, 1)))
    or (holds, operation) in SHAPES
]
"""Those that have a record, and with it exact gradients."""
each_plan = pytest.mark.parametrize("of", EVERY)
each_plan_that_scales = pytest.mark.parametrize(
    "of", [of for of in EVERY if "det" not in of[1] and of[1] != "lu"]
)

PASS_ON = "inv", "solve", "det", "slogdet"
"""What takes a matrix with NaN or infinity: no entry of the result is finite."""


def size_of(of, n):
    """Of a square matrix, or of a tall one where packs of these have kernels of their own."""
    return (n + 3, n) if of in (("packs", "pinv"), ("packs", "lstsq")) else (n, n)


def layout(tensor):
    return tuple(tensor.shape), tensor.stride()


def plan_of(of, *inputs):
    return plan(*of, inputs[0].dtype, *map(layout, inputs))


def inputs_of(of, m, n, dtype, columns=2):
    operation = operations.get(of[1])
    A = drawn(m, n, dtype=dtype, seed=m * 100 + n) + 3 * torch.eye(m, n, dtype=dtype)
    return (operation.domain.member(A), drawn(m, columns, dtype=dtype, seed=1))[: operation.arity]


def pivoted(n, dtype, count=40):
    """Matrices that are pivoted in many orders."""
    return torch.randn(count, n, n, dtype=dtype) + 2 * torch.eye(n)[:, torch.randperm(n)]


def cases(of):
    """Of every shape and dtype, with few and many right-hand sides in least squares."""
    columns = (1, 2, 4, 5, 12) if of[1] == "lstsq" else (2,)
    for (m, n), dtype, k in itertools.product(SHAPES.get(of, SQUARE), DTYPES, columns):
        yield inputs_of(of, m, n, dtype, k)


def computed(of, inputs, cotangents=torch.randn_like):
    """Outputs, cotangents and gradients; cotangents are given, or made where they may not be missing."""
    found = plan_of(of, *inputs)
    outputs, kept = found.forward(inputs)
    if callable(cotangents):
        make, which = cotangents, found.cotangents
        cotangents = [None if i in found.optional else make(outputs[i]) for i in which]
    saved = (*inputs, *(outputs[i] for i in found.saved), *kept)
    return outputs, cotangents, found.backward(saved, tuple(cotangents))


def assert_exact(operation, inputs, cotangents, gradients, rank=None):
    given = [each for each in cotangents if each is not None]
    certified = gradient(operation, inputs, given, rank=rank)
    singular_values = torch.linalg.svdvals(inputs[0])[:rank]
    limit = 500 * torch.finfo(inputs[0].dtype).eps * float(singular_values[0] / singular_values[-1])
    assert certified.relative_error(operations.get(operation).defined(gradients)) < limit


def due_of(of, inputs):
    """What torch returns; of `lstsq` by the driver that does what the plan does."""
    holds, operation = of
    if operation == "lstsq" and holds == "svd":
        return tuple(torch.linalg.lstsq(*inputs, driver="gelsd"))
    if operation == "lstsq":
        due = torch.linalg.lstsq(*inputs, driver="gels")
        # The one driver for matrices of full rank does not tell the rank.
        rank = torch.linalg.lstsq(*inputs, driver="gelsy").rank
        return due.solution, due.residuals, rank, due.singular_values
    return tree_leaves(operations.get(operation).of_torch(*inputs))
