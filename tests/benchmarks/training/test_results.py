import msgspec
import pytest

from benchmarks.training import results
from strategies.errors import UnusableFileError
from strategies.measuring.machine import Machine


def test_a_file_holds_what_was_saved(result, tmp_path):
    result.save(tmp_path / "made" / "gp.json.gz", parents=True)
    assert results.load(tmp_path / "made") == [result]


def test_quantities_are_ratios_to_pytorch(result):
    assert result.faster(result.auto)[0] == pytest.approx(2)
    assert result.faster(result.auto)[1] < 2 < result.faster(result.auto)[2]
    assert result.memory(result.tuned) == 0.25
    assert result.ceiling == pytest.approx(4)
    assert result.difference == pytest.approx(0.2)
    assert result.by_rounding is None
    moved = msgspec.structs.replace(result, moved=result.auto.losses)
    assert moved.by_rounding == pytest.approx(0.2)


def test_losses_that_are_not_finite_are_not_those_of_a_finite_one(result):
    lost = msgspec.structs.replace(result.torch, losses=(1.0, None))
    assert msgspec.structs.replace(result, torch=lost).difference == float("inf")


def test_only_what_was_measured_alike_is_kept(result, tmp_path):
    path, machine = tmp_path / "gp.json", result.machine
    result.save(path)
    later = msgspec.structs.replace(machine, started_at="2024-01-01T00:00:00+00:00")
    assert results.kept(path, "small", 2, later)
    others = [("full", 2, machine), ("small", 100, machine), ("small", 2, Machine("another"))]
    assert not any(results.kept(path, *other) for other in others)
    assert not results.kept(tmp_path / "elm.json", "small", 2, machine)


def test_no_results_and_damaged_ones_are_told(tmp_path):
    with pytest.raises(UnusableFileError, match="make programs"):
        results.load(tmp_path)
    (tmp_path / "gp.json").write_text("{")
    with pytest.raises(UnusableFileError, match=r"gp\.json"):
        results.load(tmp_path)
