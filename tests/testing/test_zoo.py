import pytest
from zoo import ZOO
from zoo.register import Sound

from strategies.testing import Status, checks, outcome_of


@pytest.mark.parametrize("kind", ZOO, ids=lambda kind: kind.name)
def test_each_broken_strategy_is_caught_by_the_check_that_is_meant_to(kind):
    (check,) = (check for check in checks() if check.name == ZOO[kind])
    assert outcome_of(check, kind()).status is Status.FAILED


def test_what_the_zoo_spoils_is_sound():
    for name in sorted(set(ZOO.values())):
        (check,) = (check for check in checks() if check.name == name)
        outcome = outcome_of(check, Sound())
        assert outcome.status is not Status.FAILED, outcome


def test_names_of_checks_are_unique():
    names = [check.name for check in checks()]
    assert len(set(names)) == len(names)
