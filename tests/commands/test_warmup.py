"""`backward-strategies warmup`, by which nothing is compiled."""

import pytest
import torch

import strategies


@pytest.fixture
def compiled(monkeypatch):
    """The dtypes that kernels are compiled for: two kernels."""
    asked = []

    def warmup(dtypes, *, progress):
        asked.extend(dtypes)
        for done in range(3):
            progress(done, 2)
        return ["one", "other"]

    monkeypatch.setattr(strategies, "warmup", warmup)
    return asked


def test_a_grid_needs_its_dtypes_only(invoke, compiled):
    result = invoke("warmup", "--grid", "quick")
    assert result.exit_code == 0, result.output
    assert compiled == [torch.float32, torch.float64]


def test_without_a_grid_it_is_all_dtypes(invoke, compiled):
    invoke("warmup")
    assert len(compiled) == 4


def test_progress_goes_to_the_error_stream_and_the_count_to_the_other(invoke, compiled):
    result = invoke("warmup", "--grid", "tiny")
    assert result.stderr.strip() == "0 of 2 done: compiling kernels for float64"
    assert result.stdout.strip() == "2 kernels compiled"


def test_an_interruption_says_how_to_go_on(invoke, monkeypatch):
    def warmup(dtypes, *, progress):
        progress(0, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(strategies, "warmup", warmup)
    result = invoke("warmup", "--grid", "tiny")
    assert result.exit_code == 130
    assert "what is compiled is kept; the same command goes on" in result.stderr


def test_an_unknown_grid_is_refused_by_name(invoke, fails, compiled):
    fails(invoke("warmup", "--grid", "huge"), "no grid is named 'huge'")
    assert compiled == []
