import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from strategies.cli import common
from strategies.cli.main import app
from strategies.cli.main import main as call
from tests.process import run


@pytest.fixture
def invoke(monkeypatch):
    """Runs a command in a console that is wide enough, and requires an exit code."""
    # Rich takes the width from the terminal, of which there is none.
    monkeypatch.setattr(common.console, "_width", 200)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def main(monkeypatch, capsys):
    """Calls what the process calls, by a command line; a command that runs a program needs that."""

    def main(*arguments, code=0):
        # What a program changes.
        monkeypatch.setattr(sys, "argv", ["backward-strategies", *map(str, arguments)])
        monkeypatch.setattr(sys, "path", sys.path[:])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        ended = 0
        try:
            call()
        except SystemExit as error:
            ended = error.code
        except BaseException:  # noqa: BLE001 - Ctrl-C, too
            ended = 1
        said = capsys.readouterr()
        assert ended == code, said.err
        return SimpleNamespace(stdout=said.out, stderr=said.err)

    return main


@pytest.fixture
def python(tmp_path):
    """Runs Python in a folder, in a process of its own."""

    return functools.partial(run, sys.executable, cwd=tmp_path, stdin="")


@pytest.fixture
def fails(invoke):
    """Requires exit code 2 and one line that says certain things."""

    def fails(arguments, *said, by=invoke):
        (line,) = by(*arguments, code=2).stderr.strip().splitlines()
        assert line.startswith("error: ")
        for text in said:
            assert text in line

    return fails


@pytest.fixture
def kept(tmp_path):
    """A file in which a command keeps what it finds; there is none yet."""
    return tmp_path / "kept.json"


@pytest.fixture
def results():
    """Kept results of a whole grid."""
    return Path(__file__).parents[2] / "results" / "epyc-2cores" / "grid"
