"""Factors of hard matrices, judged by the stability ratio of the operation that each use is."""

import pytest
import torch
from comparison import drawn

import strategies
from strategies import operations
from strategies.accuracy import gallery
from strategies.accuracy.stability import LIMIT, references
from strategies.errors import LinAlgError

SEEDS = 431, 5
OF_USE = {
    "solve": lambda f, B: f.solve(B),
    "inv": lambda f: f.inverse(),
    "det": lambda f: f.det(),
    "slogdet": lambda f: f.slogdet(),
    "lstsq": lambda f, B: f.lstsq(B),
    "pinv": lambda f: f.inverse(),
}
"""What a factor does, by the operation that it is."""

SHAPES = {"lu": (6, 6), "qr": (9, 5), "svd": (7, 6)}
CASES = [
    (kind, operation, name)
    for kind in SHAPES
    for operation in OF_USE
    for name in gallery.names()
    if (operation in ("lstsq", "pinv")) == (kind != "lu")
]


def ratio(kind, operation, name, seed):
    """The largest of results and gradients; None where a kind refuses the matrix."""
    record = operations.get(operation)
    try:
        specimen = gallery.make(name, SHAPES[kind], torch.float64, seed=seed)
    except ValueError:
        return None  # of no such shape
    is_full = specimen.rank == min(SHAPES[kind])
    A = specimen.matrix
    rhs = [drawn(len(A), 2, seed=seed)] * (record.arity - 1)
    shapes = record.output_shapes(*(tuple(each.shape) for each in (A, *rhs)))
    cotangents = [drawn(*each, seed=seed + 1 + i) for i, each in enumerate(shapes)]
    inputs = [each.clone().requires_grad_() for each in (A, *rhs)]
    try:
        f = strategies.factor(inputs[0], kind)
    except LinAlgError:
        assert kind != "svd"
        return None
    if not is_full and (kind != "svd" or int(f.rank) != specimen.rank):
        return None  # whose reference has another rank than the numbers
    outputs = OF_USE[operation](f, *inputs[1:])
    outputs = record.outputs(outputs) if operation == "slogdet" else (outputs,)
    found = torch.autograd.grad(outputs, inputs, cotangents[-len(outputs) :])
    results, gradients = references(operation, (A, *rhs), cotangents, rank=specimen.rank)
    pairs = [*zip(results, outputs, strict=False), *zip(gradients, found, strict=True)]
    representable = (exact.ratio(each) for exact, each in pairs if exact.is_representable)
    return max(map(max, representable), default=0.0)


QUICK = "solve", "lstsq"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kind", "operation", "name"),
    [pytest.param(*case, marks=() if case[1] in QUICK else pytest.mark.slow) for case in CASES],
)
def test_a_factor_is_stable(kind, operation, name, seed):
    found = ratio(kind, operation, name, seed)
    if found is None:
        pytest.skip("refused, or of another shape")
    assert found < LIMIT
