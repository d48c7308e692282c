import pathlib

import platformdirs

from strategies.files.folders import cache_directory, configuration_directory


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("BACKWARD_STRATEGIES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "backward-strategies"


def test_the_folder_of_a_user_is_where_the_environment_says_or_the_platforms(monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CONFIG", "somewhere")
    assert configuration_directory() == pathlib.Path("somewhere")
    monkeypatch.delenv("BACKWARD_STRATEGIES_CONFIG")
    found = configuration_directory()
    assert found.name == "backward-strategies"
    assert found.parent == platformdirs.user_config_path()
