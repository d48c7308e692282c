"""What asv is told of the machine."""

import json

from benchmarks import machine


def test_an_entry_is_added_to_those_of_asv_as_text(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    other = {"version": 1, "other": {"machine": "other", "cpu": "something"}}
    (tmp_path / ".asv-machine.json").write_text(json.dumps(other))
    machine.main()
    machines = json.loads((tmp_path / ".asv-machine.json").read_text())
    assert machines.pop("version") == 1
    assert machines.pop("other") == other["other"]
    (entry,) = machines.values()
    assert {"machine", "cpu", "ram", "threads", "blas", "torch"} <= set(entry)
    assert all(isinstance(value, str) for value in entry.values())
