import strategies
from strategies import registry


def test_every_strategy_is_shown(invoke):
    result = invoke("list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in strategies.available())


def test_brackets_in_a_summary_are_no_markup(invoke, monkeypatch):
    monkeypatch.setattr(type(registry.get("qr_pinv")), "summary", "[/] is odd [bench]")
    assert "[/] is odd [bench]" in invoke("list").stdout
