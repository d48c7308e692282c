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


@pytest.mark.parametrize(
    ("operation", "fastest", "regret"),
    [
        ("inv", "blocked_lu", 1.5),
        # Of the gradient of det PyTorch's is unstable, so that it cannot be regretted.
        ("det", "blocked_lu", 1.5),
    ],
)
def test_the_regret_is_over_the_fastest_that_may_be_used(monkeypatch, operation, fastest, regret):
    took = dict.fromkeys(choices.registry.available(), 5.0) | {fastest: 2.0, "auto": 3.0}
    if operation == "det":
        took["native"] = 1.0
    monkeypatch.setattr(choices, "measure", measured(took))
    monkeypatch.setattr(choices.registry, "distinct", lambda _: ("native", "fused", "blocked_lu"))
    found = choice(Case(operation, (9, 9)), 2.0, 0.1)
    assert (found.case, found.count) == (f"{operation} 9x9 float64 cpu", 2.0)
    assert (found.fastest, found.regret) == (fastest, pytest.approx(regret))
    assert found.over_torch == took["native"] / 3


def test_a_quantile_is_one_of_the_values():
    values = [float(i) for i in range(1, 21)]
    assert quantile(values, 0.95) == 19
    assert quantile(values, 1.0) == 20
    assert quantile([3.0], 0.95) == 3
