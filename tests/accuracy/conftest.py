import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    """Of gradients alone: compiled kernels stay where they are."""
    monkeypatch.setattr("strategies.accuracy.cache.cache_directory", lambda: tmp_path / "cache")
