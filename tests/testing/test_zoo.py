import importlib.util
from pathlib import Path

import pytest

from strategies.testing import CHECKS, ConformanceError, check_strategy

_spec = importlib.util.spec_from_file_location("zoo", Path(__file__).with_name("zoo.py"))
zoo = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(zoo)


@pytest.mark.parametrize("kind", zoo.ZOO, ids=lambda kind: kind.name)
def test_each_broken_strategy_is_caught_by_the_check_that_is_meant_to(kind):
    report = check_strategy(kind)
    assert zoo.ZOO[kind] in [failure.check for failure in report.failures], str(report)
    with pytest.raises(ConformanceError):
        report.raise_if_failed()


def test_every_group_of_checks_has_a_prisoner():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert set(zoo.ZOO.values()) <= set(names)
