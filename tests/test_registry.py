"""Strategies by name, and those that installed packages bring along."""

import pytest

import strategies
from strategies import registry
from strategies.builtin.triangular_solve import TriangularSolve


class Offered(TriangularSolve):
    name = "offered"
    summary = "a strategy of another package"


class Changed(Offered):
    def _refuse_singular(self, *arguments):
        pass


def test_the_baseline_comes_first():
    assert strategies.available()[0] == "native"


def test_each_name_gives_the_strategy_of_that_name():
    assert all(strategies.get(name).name == name for name in strategies.available())


def test_an_unknown_name_lists_the_close_ones():
    with pytest.raises(strategies.StrategyNotFoundError, match="qr_pinv"):
        strategies.get("qr_pinvs")


def test_a_package_offers_a_strategy_by_an_entry_point(offer):
    offer(offered=Offered)
    assert strategies.available()[-1] == "offered"
    assert isinstance(strategies.get("offered"), Offered)


@pytest.mark.parametrize(("kind", "expected"), [(Offered, False), (Changed, True)])
def test_a_subclass_that_changes_a_helper_has_code_of_its_own(offer, kind, expected):
    offer(offered=kind)
    assert ("offered" in registry.distinct("pinv")) is expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:Nothing", "ModuleNotFoundError"),
        ("builtins:int", "not a subclass"),
        ("strategies.builtin.native:Native", "exists already"),
        (SystemExit(0), "SystemExit"),
        (RecursionError("deep"), "RecursionError"),
        (GeneratorExit(), "GeneratorExit"),
    ],
    ids=str,
)
def test_a_plug_in_that_fails_is_named_and_left_out(offer, value, reason):
    offer(broken=value)
    with pytest.warns(UserWarning, match=f"'broken'.*{reason}"):
        assert strategies.available() == registry.built_in()


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
def test_what_a_plug_in_lacks_is_said_in_one_line(offer, attributes, reason):
    offer(broken=type("Odd", (Offered,), attributes))
    with pytest.warns(UserWarning, match="'broken'") as warned:
        assert strategies.available() == registry.built_in()
    (line,) = str(warned[0].message).splitlines()
    assert reason in line


def test_ctrl_c_during_an_import_is_the_users(offer):
    offer(broken=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        strategies.available()


def test_of_two_plug_ins_with_one_name_the_first_is_kept(offer):
    offer(b=Changed, a=Offered)
    with pytest.warns(UserWarning, match="'b'.*'offered' exists already"):
        assert type(strategies.get("offered")) is Offered
