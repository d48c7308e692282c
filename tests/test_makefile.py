"""What `make` runs, with programs that do nothing but say that they were called."""

import re
from pathlib import Path

import pytest

from tests.process import run

MAKEFILE = Path(__file__).parents[1] / "Makefile"
PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> log
case "$*" in
    *operations.measured*) echo "det inv" ;;
    *benchmarks.slice*) echo "SLICE" ;;
    *--bench*"$FAILS"*) exit "$STATUS" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Makes targets in a folder of their own; returns the calls that this took, without publishing."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "asv", "backward-strategies"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    (tmp_path / "Makefile").symlink_to(MAKEFILE)
    for name in ("pyproject.toml", "constraints.txt", "venv/bench"):
        (tmp_path / name).touch()

    def make(*arguments, fails="nothing", status=0):
        (tmp_path / "log").write_text("")
        environment = {"FAILS": fails, "STATUS": str(status), "MAKEFLAGS": ""}
        done = run("make", "VENV=venv", "GRID=tiny", *arguments, cwd=tmp_path, **environment)
        calls = (tmp_path / "log").read_text().splitlines()
        return done.returncode, [call for call in calls if "asv run" in call or "warmup" in call]

    return make


def recorded(calls):
    """What asv was told to run."""
    return [call.partition("--bench ")[2] for call in calls if "asv run" in call]


def test_a_bench_records_a_slice_and_keeps_it_when_it_continues(make):
    assert recorded(make("bench", fails="SLICE", status=1)[1]) == ["SLICE"]
    assert recorded(make("bench", "CONTINUE=1")[1]) == ["SLICE"]
    assert recorded(make("bench", "CONTINUE=1")[1]) == []
    status, calls = make("bench")
    assert (status, recorded(calls)) == (0, ["SLICE"])


def test_the_history_records_all_operations_after_a_slice_too(make):
    make("dashboard")
    assert recorded(make("history", "CONTINUE=1")[1]) == [r"^det\.", r"^inv\."]


def test_a_history_that_continues_begins_where_it_was_interrupted(make):
    status, calls = make("history", fails="inv", status=1)
    assert (status > 0, recorded(calls)) == (True, [r"^det\.", r"^inv\."])
    assert recorded(make("history", "CONTINUE=1")[1]) == [r"^inv\."]
    assert recorded(make("history")[1]) == [r"^det\.", r"^inv\."]


@pytest.mark.parametrize("target", ["dashboard", "history"])
def test_cells_that_fail_stop_nothing(make, target):
    assert make(target, fails="", status=2)[0] == 0


@pytest.mark.parametrize("extra", ["dev", "bench"])
def test_an_installation_builds_the_fast_path(make, tmp_path, extra):
    (tmp_path / "venv" / extra).unlink(missing_ok=True)
    status, calls = make(f"venv/{extra}")
    assert (status, calls) == (0, ["backward-strategies warmup"])


def test_the_matrix_has_an_environment_for_each_python(tmp_path):
    def environment(version):
        python = tmp_path / f"python{version}"
        python.write_text(f"#!/bin/sh\necho {version}\n")
        python.chmod(0o755)
        dry = "make", "--dry-run", "--file", MAKEFILE, "matrix", "TORCH=2.15.0"
        done = run(*dry, f"PYTHON={python}")
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"\.venv-[^/\s]*", done.stdout))

    assert environment("3.13") == {".venv-torch-2.15.0-3.13"}
    assert environment("3.14") == {".venv-torch-2.15.0-3.14"}
