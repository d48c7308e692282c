"""Strategies by name, and those that installed packages bring along."""

from __future__ import annotations

import importlib.metadata

import pytest

import strategies
from strategies import registry
from strategies.builtin.triangular_solve import TriangularSolve


class Offered(TriangularSolve):
    name = "offered"
    summary = "a strategy of another package"


@pytest.fixture
def entry_points(monkeypatch):
    def offer(*points: tuple[str, str]) -> None:
        found = [
            importlib.metadata.EntryPoint(name, value, registry.ENTRY_POINT_GROUP)
            for name, value in points
        ]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found)
        registry._strategies.cache_clear()

    yield offer
    registry._strategies.cache_clear()


def test_the_baseline_comes_first():
    assert strategies.available()[0] == "native"


def test_each_name_gives_the_strategy_of_that_name():
    assert all(strategies.get(name).name == name for name in strategies.available())


def test_an_unknown_name_lists_the_close_ones():
    with pytest.raises(strategies.StrategyNotFoundError, match="qr_pinv"):
        strategies.get("qr_pinvs")


def test_a_package_offers_a_strategy_by_an_entry_point(entry_points, monkeypatch):
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: Offered)
    entry_points(("offered", "package.module:Offered"))

    assert strategies.available()[-1] == "offered"
    assert isinstance(strategies.get("offered"), Offered)


def test_a_subclass_that_changes_a_helper_has_code_of_its_own(entry_points, monkeypatch):
    class Changed(Offered):
        def _refuse_singular(self, *arguments):
            pass

    for kind, expected in ((Offered, False), (Changed, True)):
        monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self, kind=kind: kind)
        entry_points(("offered", "package.module:Offered"))
        assert ("offered" in registry.distinct("pinv")) is expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:Nothing", "ModuleNotFoundError"),
        ("builtins:int", "not a subclass"),
        ("strategies.builtin.native:Native", "exists already"),
    ],
)
def test_a_plug_in_that_fails_is_named_and_left_out(entry_points, value, reason):
    entry_points(("broken", value))

    with pytest.warns(UserWarning, match=f"'broken'.*{reason}"):
        names = strategies.available()

    assert "native" in names
    assert "broken" not in names
