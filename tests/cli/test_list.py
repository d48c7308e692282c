import importlib.metadata

import strategies
from strategies import registry


def test_every_strategy_is_shown(invoke):
    result = invoke("list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in strategies.available())


def test_brackets_in_a_summary_are_no_markup(invoke, monkeypatch):
    monkeypatch.setattr(type(registry.get("qr_pinv")), "summary", "[/] is odd [bench]")
    assert "[/] is odd [bench]" in invoke("list").stdout


def test_a_plug_in_that_is_left_out_is_one_line_on_standard_error(invoke, monkeypatch):
    def load(self):
        raise SystemExit("[red]\ntwo lines")

    point = importlib.metadata.EntryPoint("broken", "package:Kind", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", load)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    registry._strategies.cache_clear()
    try:
        result = invoke("list")
    finally:
        registry._strategies.cache_clear()
    assert result.exit_code == 0
    assert "triangular_solve" in result.stdout
    (line,) = result.stderr.strip().splitlines()
    assert "'broken' (package:Kind) is left out: SystemExit: [red] two lines" in line
