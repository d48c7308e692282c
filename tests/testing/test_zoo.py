import re

import pytest
from unusual import UNUSUAL
from zoo import ZOO

from strategies import operations
from strategies.testing import Status, check_strategy, checks, outcome_of

BY_NAME = {check.name: check for check in checks()}


@pytest.mark.parametrize("kind", ZOO, ids=lambda kind: kind.name)
def test_each_broken_strategy_is_caught_by_the_checks_that_are_meant_to(kind):
    for name in ZOO[kind]:
        outcome = outcome_of(BY_NAME[name], kind())
        assert outcome.status is Status.FAILED, name
        of = name.split()[-1]
        if name.startswith(("sizes of", "batches of")) and of in operations.names():
            assert re.match(f"{of} .*(float|complex)", outcome.detail), outcome


@pytest.mark.parametrize("kind", UNUSUAL, ids=lambda kind: kind.name)
def test_what_is_unusual_but_right_has_the_right_gradients(kind):
    for name in ("gradient of lu", "gradient of lstsq"):
        outcome = outcome_of(BY_NAME[name], kind())
        assert outcome.status is not Status.FAILED, outcome


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNUSUAL, ids=lambda kind: kind.name)
def test_what_is_unusual_but_right_passes(kind):
    check_strategy(kind).raise_if_failed()


def test_names_of_checks_are_unique():
    assert len(BY_NAME) == len(checks())
