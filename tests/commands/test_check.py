import pytest

from strategies.testing import Report, Status
from strategies.testing.report import Outcome

TARGET = "strategies.builtin.triangular_solve:TriangularSolve"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_colon", "not of the form module:Class"),
        ("nowhere.to.be.found:X", "nowhere"),
        ("pathlib:Path", "is not a subclass of strategies.Strategy"),
    ],
)
def test_what_cannot_be_checked_is_one_line(invoke, fails, target, said):
    fails(invoke("check", target), said)


def test_a_device_has_to_be_there(invoke, fails):
    for device in ("xyz", "meta", "cuda:99"):
        fails(invoke("check", TARGET, "--device", device), device)


def test_a_sound_strategy_is_in_order(invoke, monkeypatch):
    outcomes = (Outcome("gradient of pinv", Status.PASSED), Outcome("[/]", Status.NOT_APPLICABLE))
    report = Report("triangular_solve", outcomes)
    monkeypatch.setattr("strategies.testing.check_strategy", lambda *_: report)
    result = invoke("check", TARGET)
    assert result.exit_code == 0, result.output
    assert f"{TARGET}: in order" in result.stdout
    assert "gradient of pinv" in result.stdout
    assert "[/]" in result.stdout


def test_a_broken_strategy_gives_exit_code_one_and_the_fault(invoke, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text(
        "from strategies.builtin.triangular_solve import TriangularSolve\n"
        "class Broken(TriangularSolve):\n"
        "    name = 'broken'\n"
        "    def inv_backward(self, saved, cotangent):\n"
        "        return 2 * cotangent\n"
    )
    monkeypatch.chdir(tmp_path)
    result = invoke("check", "broken:Broken")
    assert result.exit_code == 1
    assert "batched gradient of inv" in result.stdout
    assert "times what rounding" in result.stdout
    assert "checks failed" in result.stdout
