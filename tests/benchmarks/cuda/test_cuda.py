"""What is measured on a CUDA device, by timings that are made up."""

import itertools
from types import SimpleNamespace

import torch
from by_hand import took

from benchmarks.cuda import __main__ as cuda
from strategies import policy
from strategies.measuring import store
from strategies.measuring.measurement import Cell
from strategies.policy.schema import Policy
from strategies.selection import calibrating


def test_every_case_has_pytorch_and_what_is_stable(monkeypatch, tmp_path):
    def race(case, names, budget):
        return Cell(case, tuple(map(took, names, itertools.count(1.0))))

    memory = SimpleNamespace(total_memory=80e9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: memory)
    monkeypatch.setattr(calibrating, "race", race)
    path = tmp_path / "grid.json"
    cuda.main(path, minutes=0.05, machine="gpu")
    (run,) = store.load(path, "grid")
    assert run.machine.name == "gpu"
    assert len(run.cells) > 3
    for cell in run.cells:
        assert cell.case.device == "cuda:0"
        first, *others = (each.strategy for each in cell)
        assert first == policy.BASELINE
        assert others


def test_an_svd_is_no_contender_where_it_is_hopeless():
    known = cuda.without_svd(Policy.read(policy.SHIPPED))
    assert not known.operations["cholesky"].allows("svd_truncated_pinv")
    assert known.operations["pinv"] == Policy.read(policy.SHIPPED).operations["pinv"]
