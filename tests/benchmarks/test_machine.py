"""What asv is told of the machine."""

import json

import torch

from benchmarks import machine


def test_description_is_text():
    description = machine.description()
    assert all(isinstance(value, str) for value in description.values())
    assert description["torch"] == torch.__version__
    assert description["threads"] == str(torch.get_num_threads())


def test_entry_is_added_to_those_of_asv(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    other = {"version": 1, "other": {"machine": "other", "cpu": "something"}}
    (tmp_path / ".asv-machine.json").write_text(json.dumps(other))
    machine.main()
    machines = json.loads((tmp_path / ".asv-machine.json").read_text())
    assert machines.pop("version") == 1
    assert machines.pop("other") == other["other"]
    (entry,) = machines.values()
    assert {"machine", "cpu", "ram", "threads", "blas", "torch"} <= set(entry)
