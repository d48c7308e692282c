import importlib.metadata
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from strategies.cli.common import reports_errors
from strategies.cli.main import app


def test_all_commands_are_listed_whatever_is_installed():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in (
        "list",
        "check",
        "measure",
        "run",
        "record",
        "recommend",
        "policy",
        "regret",
        "plot",
    ):
        assert f" {name} " in result.stdout


def test_the_version_is_that_of_the_package():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.strip() == importlib.metadata.version("backward-strategies")


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "strategies", "--version"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ImportError("needs: pip install 'backward-strategies[bench]'"), 2, "[bench]"),
        (ValueError("one\ntwo"), 2, "error: one two"),
        (LookupError("nothing [/] there"), 2, "error: nothing [/] there"),
        (KeyboardInterrupt("3 of 4"), 130, "interrupted: 3 of 4"),
    ],
)
def test_what_a_user_can_cause_is_one_line(raised, code, said):
    toy = typer.Typer()

    @toy.command()
    @reports_errors
    def fail() -> None:
        raise raised

    result = CliRunner().invoke(toy, [])
    assert result.exit_code == code
    (line,) = result.stderr.strip().splitlines()
    assert said in line
