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


class Odd(TriangularSolve):
    """Broken in the way that a test sets."""

    summary = "odd"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"name": 3}, "Odd.name must be a str, not 3"),
        ({"name": "two\nlines"}, "must be an identifier"),
        ({"name": "[red]"}, "must be an identifier"),
        ({"name": "odd", "summary": None}, "Odd.summary must be a str"),
        ({"name": "odd", "requires_full_rank": None}, "requires_full_rank must be a bool"),
        ({"name": "odd", "__init__": lambda self, size: None}, "without arguments"),
        ({"name": "native"}, "exists already"),
    ],
    ids=["number", "lines", "markup", "no_summary", "no_rank", "arguments", "known"],
)
def test_what_a_plug_in_lacks_is_said_in_one_line(entry_points, monkeypatch, attributes, reason):
    kind = type("Odd", (Odd,), attributes)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: kind)
    entry_points(("broken", "package.module:Odd"))

    with pytest.warns(UserWarning, match="'broken'") as warned:
        assert strategies.available() == registry.built_in()
    (line,) = str(warned[0].message).splitlines()
    assert reason in line


@pytest.mark.parametrize(
    "error", [SystemExit(0), RecursionError("deep"), GeneratorExit()], ids=repr
)
def test_what_an_import_raises_leaves_the_plug_in_out(entry_points, monkeypatch, error):
    def load(self):
        raise error

    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", load)
    entry_points(("broken", "package.module:Odd"))
    with pytest.warns(UserWarning, match=type(error).__name__):
        assert strategies.available() == registry.built_in()


def test_ctrl_c_during_an_import_is_the_users(entry_points, monkeypatch):
    def load(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", load)
    entry_points(("broken", "package.module:Odd"))
    with pytest.raises(KeyboardInterrupt):
        strategies.available()


def test_of_two_plug_ins_with_one_name_the_first_is_kept(entry_points, monkeypatch):
    class Second(Offered):
        pass

    kinds = {"a": Offered, "b": Second}
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: kinds[self.name])
    entry_points(("b", "package.module:Second"), ("a", "package.module:Offered"))
    with pytest.warns(UserWarning, match="'b'.*'offered' exists already"):
        assert type(strategies.get("offered")) is Offered
