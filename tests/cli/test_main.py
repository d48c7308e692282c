"""The command, and its shortest subcommands."""

import importlib.metadata

import pytest
import torch
import typer
from typer.testing import CliRunner

import strategies
from strategies import explain, registry, use
from strategies.autograd.explanation import explain_key
from strategies.cli.common import reports_errors
from strategies.kernels import extension
from strategies.kernels.cpu import library

COMMANDS = (
    *("list", "check", "measure", "run", "record", "recommend", "policy", "regret"),
    *("calibrate", "explain", "oracle", "stability", "sweep", "warmup"),
)


def test_all_commands_are_listed_whatever_is_installed(invoke):
    shown = invoke("--help").stdout
    assert [name for name in COMMANDS if f" {name} " not in shown] == []


def test_the_package_runs_as_a_module_and_says_its_version(python):
    said = python("-m", "strategies", "--version").stdout
    assert said.strip() == importlib.metadata.version("backward-strategies")


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


def test_every_strategy_is_shown_and_brackets_are_no_markup(invoke, monkeypatch):
    monkeypatch.setattr(type(registry.get("qr_pinv")), "summary", "[/] is odd [bench]")
    shown = invoke("list").stdout
    assert all(said in shown for said in (*strategies.available(), "[/] is odd [bench]"))


def test_a_plug_in_that_is_left_out_is_one_line_on_standard_error(invoke, offer):
    offer(broken=SystemExit("[red]\ntwo lines"))
    result = invoke("list")
    assert "triangular_solve" in result.stdout
    (line,) = result.stderr.strip().splitlines()
    assert "'broken' (package.module:Kind) is left out: SystemExit: [red] two lines" in line


def test_explain_says_what_auto_is_and_why(invoke):
    said = invoke("explain", "pinv", "64x16", "float32").stdout
    first = explain_key(("pinv", 64, 16, 1, 0, "float32", "cpu")).tried[0]
    assert said.splitlines()[0] == f'pinv of 64x16, float32, cpu: "auto" is {first}'
    assert "by the shipped policy" in said
    assert "stability ratios in hard cases (limit 100):" in said
    assert "native: unstable" in said
    assert "measured on epyc" in said


def test_a_case_that_is_none_is_refused(fails):
    fails(["explain", "pinv", "big"], "'pinv big' is no case")


def test_a_strategy_that_is_used_answers_for_itself():
    with use("qr_pinv"):
        found = explain("lu", torch.ones(2, 3, 3))
    assert (found.tried, found.source) == (("qr_pinv",), "strategies.use('qr_pinv')")
    assert found.key == ("lu", 3, 3, 1, 2, "float32", "cpu")
    assert "stability" not in str(found)


@pytest.fixture
def built(monkeypatch):
    """How often the fast path was built, which it is not."""
    calls = []
    monkeypatch.setattr(strategies, "warmup", lambda: calls.append(1))
    return calls


@pytest.mark.parametrize(("is_there", "count"), [(True, 0), (False, 1)])
def test_warmup_builds_what_is_not_there(invoke, built, monkeypatch, is_there, count):
    monkeypatch.setattr(extension, "is_missing", lambda: not is_there)
    invoke("warmup", code=0 if is_there and extension.load() else 1)
    assert len(built) == count


def test_warmup_says_if_there_are_no_kernels(invoke, built, monkeypatch):
    monkeypatch.setattr(library, "is_available", lambda: False)
    monkeypatch.setattr(
        library, "missing", lambda: "as the package was installed without a C++ compiler"
    )
    result = invoke("warmup", code=1)
    assert "there are no compiled kernels, as the package was installed" in result.stdout
    assert built == []
