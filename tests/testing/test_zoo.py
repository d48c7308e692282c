import itertools
import re

import pytest
from unusual import UNUSUAL
from zoo import ZOO
from zoo.register import Sound

from strategies import operations
from strategies.testing import Status, check_strategy, checks, outcome_of


@pytest.mark.parametrize("kind", ZOO, ids=lambda kind: kind.name)
def test_each_broken_strategy_is_caught_by_the_checks_that_are_meant_to(kind):
    by_name = {check.name: check for check in checks()}
    for name in ZOO[kind]:
        outcome = outcome_of(by_name[name], kind())
        assert outcome.status is Status.FAILED, name
        of = name.split()[-1]
        if name.startswith(("sizes of", "batches of")) and of in operations.names():
            assert re.match(f"{of} .*(float|complex)", outcome.detail), outcome


@pytest.mark.slow
def test_what_the_zoo_spoils_is_sound():
    for name in sorted(set(itertools.chain(*ZOO.values()))):
        (check,) = (check for check in checks() if check.name == name)
        outcome = outcome_of(check, Sound())
        assert outcome.status is not Status.FAILED, outcome


@pytest.mark.parametrize("kind", UNUSUAL, ids=lambda kind: kind.name)
def test_what_is_unusual_but_right_has_the_right_gradients(kind):
    for operation in ("lu", "lstsq"):
        (check,) = (check for check in checks() if check.name == f"gradient of {operation}")
        outcome = outcome_of(check, kind())
        assert outcome.status is not Status.FAILED, outcome


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNUSUAL, ids=lambda kind: kind.name)
def test_what_is_unusual_but_right_passes(kind):
    check_strategy(kind).raise_if_failed()


def test_names_of_checks_are_unique():
    names = [check.name for check in checks()]
    assert len(set(names)) == len(names)
