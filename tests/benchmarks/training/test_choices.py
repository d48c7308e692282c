import by_hand
import pytest

from benchmarks.training import choices
from benchmarks.training.choices import choice, quantile
from strategies.measuring.case import Case
from strategies.measuring.measurement import Cell


def measured(took):
    return lambda case, names, **_: Cell(
        case, tuple(by_hand.took(name, took[name]) for name in names)
    )


# Of the gradient of det PyTorch's is unstable, so that it cannot be regretted.
@pytest.mark.parametrize(("operation", "native"), [("inv", 5.0), ("det", 1.0)])
def test_the_regret_is_over_the_fastest_that_may_be_used(monkeypatch, operation, native):
    took = dict.fromkeys(choices.registry.available(), 5.0)
    took |= {"native": native, "blocked_lu": 2.0, "auto": 3.0}
    monkeypatch.setattr(choices, "measure", measured(took))
    monkeypatch.setattr(choices.registry, "distinct", lambda _: ("native", "fused", "blocked_lu"))
    found = choice(Case(operation, (9, 9)), 2.0, 0.1)
    assert (found.case, found.count) == (f"{operation} 9x9 float64 cpu", 2.0)
    assert (found.fastest, found.regret) == ("blocked_lu", pytest.approx(1.5))
    assert found.over_torch == native / 3


def test_a_quantile_is_one_of_the_values():
    values = [float(i) for i in range(1, 21)]
    assert quantile(values, 0.95) == 19
    assert quantile(values, 1.0) == 20
    assert quantile([3.0], 0.95) == 3
