import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner


@pytest.fixture
def invoke(monkeypatch):
    """Runs a command in a console that is wide enough."""
    from strategies.cli import common
    from strategies.cli.main import app

    # Rich takes the width from the terminal, of which there is none.
    monkeypatch.setattr(common.console, "_width", 200)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def main(monkeypatch, capsys):
    """Calls what the process calls, by a command line; a command that runs a program needs that."""
    from strategies.cli.main import main as call

    def main(*arguments):
        # What a program changes.
        monkeypatch.setattr(sys, "argv", ["backward-strategies", *map(str, arguments)])
        monkeypatch.setattr(sys, "path", sys.path[:])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        ended = None
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - Ctrl-C, too
            ended = error
        code = ended.code if isinstance(ended, SystemExit) else 0 if ended is None else 1
        said = capsys.readouterr()
        return SimpleNamespace(exit_code=code, stdout=said.out, stderr=said.err)

    return main


@pytest.fixture
def python(tmp_path):
    """Runs Python in a folder, in a process of its own."""

    def python(*arguments, stdin=""):
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )

    return python


@pytest.fixture
def fails():
    """Requires exit code 2 and one line that says certain things."""

    def fails(result, *said):
        assert result.exit_code == 2, result.output
        (line,) = result.stderr.strip().splitlines()
        assert line.startswith("error: ")
        for text in said:
            assert text in line

    return fails


@pytest.fixture
def results():
    """Kept results of a whole grid."""
    return Path(__file__).parents[2] / "results" / "epyc-2cores" / "grid"
