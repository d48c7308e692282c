import contextlib

import pytest
import torch

import strategies
from benchmarks.programs import named
from benchmarks.training import ways
from strategies import policy


def test_a_way_is_what_is_around_a_program():
    with ways.way(ways.TORCH):
        assert not strategies.is_replaced()
    with ways.way(ways.AUTO):
        assert strategies.is_replaced("inv")
        assert "policy" in policy.active()[1]
    with ways.way("qr_pinv"):
        assert strategies.is_replaced("inv")
        assert policy.active()[0] is strategies.get("qr_pinv")
    assert not strategies.is_replaced()


def test_losses_and_memory_are_of_the_program(tiny):
    program = named("gp")
    found = ways.losses(program, "small", ways.TORCH, 3)
    assert found == ways.losses(program, "small", ways.TORCH, 4)[:3]
    assert ways.memory(program, "small", ways.TORCH) > 0


def test_parameters_move_by_one_rounding_once(tiny):
    program = named("gp")
    found = ways.moved_losses(program, "small", 3)
    due = ways.losses(program, "small", ways.TORCH, 3)
    assert found[0] == due[0]
    assert found != due
    assert found == pytest.approx(due, rel=1e-10)
    assert ways.losses(program, "small", ways.TORCH, 3) == due


def test_a_sampler_replaces_nothing_between_its_samples(tiny):
    sample = ways.sampler(named("gp"), "small", ways.AUTO)
    assert not strategies.is_replaced()
    assert sample() > 0
    assert not strategies.is_replaced()


class Peer(contextlib.nullcontext):
    """A process that is none."""

    def __init__(self, name, threads):
        super().__init__(self)
        assert name == "jax_program"

    def prepare(self, program):
        assert program == ("gp", {"points": 300})
        return 0.25, 0.5

    def sampler(self, name):
        return lambda: 3.0


def test_jax_is_timed_where_its_losses_are_the_same(monkeypatch):
    monkeypatch.setattr(ways, "Peer", Peer)
    monkeypatch.setattr(ways.importlib.util, "find_spec", lambda _: True)
    with ways.jax_sampler(named("gp"), "small", [0.25, 0.5 + 1e-7, 9.0]) as found:
        assert found["jax"]() == 3.0
    with (
        pytest.raises(RuntimeError, match="losses of gp by JAX and by PyTorch"),
        ways.jax_sampler(named("gp"), "small", [0.25, 0.6]),
    ):
        pass


def test_jax_times_nothing_that_is_not_written_in_it(monkeypatch):
    with ways.jax_sampler(named("glow"), "small", [1.0]) as found:
        assert found == {}
    monkeypatch.setattr(ways.importlib.util, "find_spec", lambda _: None)
    with ways.jax_sampler(named("gp"), "small", [1.0]) as found:
        assert found == {}


def test_the_best_strategy_is_the_fastest_that_runs(monkeypatch):
    took = {"native": 2.0, "fused": 1.0}

    def sampler(program, size, name):
        if name not in took:
            raise torch.linalg.LinAlgError
        return lambda: took[name]

    monkeypatch.setattr(ways, "sampler", sampler)
    assert ways.best_strategy(named("gp"), "small") == "fused"
    took.clear()
    with pytest.raises(RuntimeError, match="no strategy can run gp"):
        ways.best_strategy(named("gp"), "small")
