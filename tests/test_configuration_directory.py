from pathlib import Path

import platformdirs

from strategies.configuration_directory import configuration_directory


def test_a_variable_names_the_folder(monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CONFIG", "somewhere")
    assert configuration_directory() == Path("somewhere")


def test_otherwise_it_is_the_users(monkeypatch):
    monkeypatch.delenv("BACKWARD_STRATEGIES_CONFIG", raising=False)
    found = configuration_directory()
    assert found.name == "backward-strategies"
    assert found.parent == platformdirs.user_config_path()
