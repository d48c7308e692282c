"""`backward-strategies warmup`, by which nothing is built."""

import pytest

import strategies
from strategies.kernels import extension
from strategies.kernels.cpu import library


@pytest.fixture
def built(monkeypatch):
    """How often the fast path was built."""
    calls = []
    monkeypatch.setattr(strategies, "warmup", lambda: calls.append(1))
    return calls


@pytest.mark.parametrize(("is_there", "count"), [(True, 0), (False, 1)])
def test_it_builds_what_is_not_there(invoke, built, monkeypatch, is_there, count):
    monkeypatch.setattr(extension, "is_missing", lambda: not is_there)
    invoke("warmup")
    assert len(built) == count


def test_it_says_if_there_are_no_kernels(invoke, built, monkeypatch):
    monkeypatch.setattr(library, "is_available", lambda: False)
    monkeypatch.setattr(
        library, "missing", lambda: "as the package was installed without a C++ compiler"
    )
    result = invoke("warmup")
    assert "there are no compiled kernels, as the package was installed" in result.stdout
    assert built == []
