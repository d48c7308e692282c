"""Programs by a factor take the course that they take by torch."""

import pytest

from benchmarks.factor_programs import ALGEBRA
from benchmarks.programs import named

SIZES = {
    "gauss_newton": {"batch": 3},
    "gp": {"points": 20},
    "kalman": {"batch": 3, "times": 4},
    "mvdr": {"frequencies": 9, "frames": 40},
    "qp": {"batch": 3, "variables": 6},
}


@pytest.mark.parametrize("name", ALGEBRA)
def test_losses_are_those_by_torch(name):
    program, sizes = named(name), SIZES[name]
    steps = program.step(**sizes), program.step(**sizes, algebra=ALGEBRA[name])
    by_torch, by_factor = ([step().item() for _ in range(4)] for step in steps)
    assert by_factor == pytest.approx(by_torch, rel=program.same)
    assert by_torch[0] != by_torch[-1]
