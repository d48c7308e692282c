from pathlib import Path

import pytest
from typer.testing import CliRunner


@pytest.fixture
def invoke(monkeypatch):
    """Runs a command in a console that is wide enough."""
    from strategies.cli import app
    from strategies.commands import common

    # Rich takes the width from the terminal, of which there is none.
    monkeypatch.setattr(common.console, "_width", 200)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


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
