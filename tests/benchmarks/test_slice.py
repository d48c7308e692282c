"""Which cells of asv `make bench` records."""

import itertools
import re

import pytest

from benchmarks.slice import MOST_SHAPES, pattern
from benchmarks.suites import suites_of
from strategies import operations
from strategies.operations.grids import GRIDS


def chosen(grid):
    """By operation, the parameters of the cells, as asv matches names with an expression."""
    found, expression = {}, re.compile(pattern(grid))
    for operation in operations.measured():
        for name, suite in suites_of(operation, grid).items():
            for params in itertools.product(*suite.params):
                text = f"{name}.time_backward({', '.join(map(repr, params))})"
                if expression.search(text):
                    assert name == f"{operation}.Single"
                    found.setdefault(operation, []).append(params)
    return found


@pytest.mark.parametrize("grid", GRIDS)
def test_every_operation_has_all_strategies_in_a_few_matrices(grid):
    found = chosen(grid)
    assert set(found) == set(operations.measured())
    for operation, params in found.items():
        shapes = {shape for _, shape, *_ in params}
        assert 1 <= len(shapes) <= MOST_SHAPES
        strategies = suites_of(operation, grid)[f"{operation}.Single"].params[0]
        assert len(params) == len(shapes) * len(strategies)


def test_other_methods_are_left_to_the_history():
    assert not re.search(
        pattern("tiny"), "inv.Single.time_forward_backward('native', '8x8', 0, 'float64', 'cpu')"
    )
