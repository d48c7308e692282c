"""Where no stability is measured, all strategies are known to be stable."""

import pytest

from strategies import operations, registry
from strategies.policy.schema import Evidence
from strategies.selection import stability


@pytest.fixture(autouse=True)
def _all_are_stable(monkeypatch):
    names = [*registry.available(), "a_stranger"]
    known = dict.fromkeys(names, Evidence(1, 0, 1.0, "inv 2x2"))
    monkeypatch.setattr(stability, "_shipped", lambda: dict.fromkeys(operations.names(), known))
