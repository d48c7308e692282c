"""The file of a recording."""

import pytest
import torch

import strategies
from strategies.integration.workload import Workload
from strategies.measuring.case import Case


@pytest.fixture
def kept(tmp_path):
    """A file of three calls of two kinds."""
    with strategies.record() as recording:
        for _ in range(2):
            torch.linalg.inv(torch.eye(3))
        torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4))
    recording.save(tmp_path / "workload.json")
    return tmp_path / "workload.json"


def test_what_is_written_can_be_read_and_measured(kept):
    workload = Workload.read(kept)
    assert {call.function for call in workload.calls} == {
        "torch.linalg.inv",
        "torch.linalg.tensorinv",
    }
    assert workload.cases() == {Case("inv", (3, 3), dtype=torch.float32): 2}
    assert workload.machine["torch"] == torch.__version__


def test_the_table_has_a_line_for_each_kind_of_call(kept):
    heading, *rows, total = str(Workload.read(kept)).splitlines()
    assert heading.split() == ["call", "count", "forward", "backward", "share", "where"]
    assert len(rows) == 2
    assert any(row.startswith("torch.linalg.inv 3x3 float32 cpu") for row in rows)
    assert "are of these calls" in total
