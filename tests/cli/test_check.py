import sys

import pytest

from strategies import testing
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
    fails(["check", target], said)


def test_a_device_has_to_be_there(invoke, fails):
    for device in ("xyz", "meta", "cuda:99"):
        fails(["check", TARGET, "--device", device], device)


def test_a_sound_strategy_is_in_order(invoke, monkeypatch):
    outcomes = (Outcome("gradient of pinv", Status.PASSED), Outcome("[/]", Status.NOT_APPLICABLE))
    report = Report("triangular_solve", outcomes)
    monkeypatch.setattr("strategies.testing.check_strategy", lambda *_: report)
    result = invoke("check", TARGET)
    assert f"{TARGET}: passed, but 1 check is not applicable, of 2" in result.stdout
    assert "gradient of pinv" in result.stdout
    assert "[/]" in result.stdout


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module `broken` to the current folder, with a class Broken of that body."""

    def write(body: str, before: str = "") -> None:
        head = f"{before}\nfrom strategies.builtin.triangular_solve import TriangularSolve\n"
        (tmp_path / "broken.py").write_text(f"{head}class Broken(TriangularSolve):\n    {body}\n")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    yield write
    sys.modules.pop("broken", None)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("name = 'broken'\n    inv_backward = lambda self, saved, G: 2 * G", "times what rounding"),
        ("name = 'broken'\n    def inv_backward(self, *_): raise SystemExit(0)", "SystemExit"),
        (
            "name = 'broken'\n    def inv_backward(self, *a): self.inv_backward(*a)",
            "RecursionError",
        ),
        ("name = 'native'", "a strategy named 'native' already"),
        ("name = '[/red] [bold]'", "[/red] [bold]"),
        ("name = 'two\\nlines'", "two\\nlines"),
    ],
    ids=["wrong", "exit", "recursion", "collision", "markup", "newline"],
)
def test_a_broken_strategy_gives_exit_code_one_and_the_fault(
    invoke, module, monkeypatch, body, said
):
    few = [c for c in testing.checks() if c.name in ("declaration", "batched gradient of inv")]
    monkeypatch.setattr(testing, "checks", lambda: tuple(few))
    module(body)
    result = invoke("check", "broken:Broken", code=1)
    assert said in result.stdout
    assert "checks failed" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("body", "before", "said"),
    [
        ("def __init__(self, size): pass", "", "without arguments"),
        ("def __init__(self): raise SystemExit(0)", "", "SystemExit"),
        ("summary = None", "", "summary must be a str"),
        ("name = 3", "", "name must be a str"),
        ("pass", "raise SystemExit(0)", "SystemExit"),
        ("pass", "raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("pass", "import no_such_module", "no_such_module"),
    ],
    ids=["arguments", "exit", "summary", "name", "import exits", "import raises", "import lacks"],
)
def test_what_cannot_be_made_is_one_line_and_exit_code_one(invoke, module, body, before, said):
    module(body, before)
    (line,) = invoke("check", "broken:Broken", code=1).stderr.strip().splitlines()
    assert line.startswith("broken:Broken: cannot be checked: ")
    assert said in line


def test_an_abstract_class_or_one_without_a_name_is_told(invoke):
    result = invoke("check", "strategies.strategy:Strategy", code=1)
    assert "without arguments" in result.stderr
