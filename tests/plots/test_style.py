import itertools

from plots import style
from strategies import registry


def test_built_ins_differ_in_colour_and_marker():
    looks = [style.look(name) for name in registry.built_in()[: len(style.COLOURS)]]
    for one, other in itertools.combinations(looks, 2):
        assert one["color"] != other["color"]
        assert one["marker"] != other["marker"]


def test_more_built_ins_than_colours_still_differ(monkeypatch):
    names = [f"s{i}" for i in range(16)]
    monkeypatch.setattr(style.registry, "built_in", lambda: tuple(names))
    assert len({tuple(style.look(name).values()) for name in names}) == 16


def test_no_plug_in_or_other_library_has_the_marker_of_a_built_in():
    for name in ("jax", "lineax", *(f"plug-in {i}" for i in range(50))):
        assert style.look(name)["marker"] not in style.MARKERS


def test_a_plug_in_looks_the_same_whatever_is_installed(monkeypatch):
    before = style.look("somebody_elses")
    monkeypatch.setattr(style.registry, "available", lambda: ("native",))
    assert style.look("somebody_elses") == before


def test_strategies_come_in_the_registrys_order():
    assert style.in_order(["zzz", "qr_pinv", "native"]) == ["native", "qr_pinv", "zzz"]
