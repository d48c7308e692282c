import msgspec
import pytest
from typer import Typer
from typer.testing import CliRunner

from benchmarks.training import __main__ as command


@pytest.fixture
def run(tmp_path, result, monkeypatch):
    """Runs the command in a folder, with what it measured before each interruption."""
    app = Typer()
    app.command()(command.main)

    def run(*arguments, after=None):
        measured = []

        def measure(program, size, **options):
            if len(measured) == after:
                raise KeyboardInterrupt
            measured.append(program.name)
            here = {"program": program.name, "machine": command.describe()}
            return msgspec.structs.replace(result, **here)

        monkeypatch.setattr(command, "measured", measure)
        done = CliRunner().invoke(app, [str(tmp_path), *arguments, "--steps", "2"])
        return done, measured

    return run


def test_an_interrupted_run_is_resumed(run, tmp_path):
    done, measured = run("gp", "elm", "roma", after=1)
    assert (done.exit_code, measured) == (130, ["gp"])
    assert "the same command resumes" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["gp.json.gz"]
    done, measured = run("gp", "elm", "roma")
    assert (done.exit_code, measured) == (0, ["elm", "roma"]), done.output
    assert "2×" in done.output
    assert run("gp", "elm", "roma")[1] == []


def test_unknown_programs_and_sizes_are_refused(run):
    refused = {("bert",): "no program bert", ("gp", "--size", "huge"): "small and full"}
    for arguments, message in refused.items():
        done, measured = run(*arguments)
        assert (done.exit_code, measured) == (2, [])
        assert message in done.stderr
