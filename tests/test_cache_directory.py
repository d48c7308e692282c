from strategies.cache_directory import cache_directory


def test_location_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("BACKWARD_STRATEGIES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "backward-strategies"
