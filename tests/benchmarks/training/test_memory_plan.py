import pytest

from benchmarks.training.memory_plan import plan
from strategies.measuring.case import Case
from strategies.measuring.memory import peak_bytes
from strategies.measuring.workload import forward_backward_of
from strategies.policy import BASELINE

CASE = Case("inv", (700, 700))


def test_the_model_says_what_the_full_size_takes():
    found = plan(CASE, (520, 600))
    assert found.matrices == 700 * 700 * 8
    for name, arrays in ((BASELINE, found.torch), (found.strategy, found.auto)):
        held = peak_bytes(forward_backward_of(CASE, name))
        assert arrays * found.matrices == pytest.approx(held, rel=0.02)


def test_a_number_of_arrays_that_depends_on_the_size_is_refused():
    with pytest.raises(ArithmeticError, match=r"arrays in \['inv 1x1"):
        plan(Case("inv", (700, 700)), (1, 600))
