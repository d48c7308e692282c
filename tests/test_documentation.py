"""What the README and the documentation show runs as written."""

import doctest
import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
import typer.main

from plots.figures import figures
from strategies import operations
from strategies.accuracy.reference import gradient
from strategies.cli.main import app
from strategies.measuring import Case, backward_of, forward
from strategies.testing import check_strategy

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BUILT = (
    *("programs", "convergence", "oracle", "added_on_kahan", "lstsq_residuals"),
    *(f"error_against_conditioning_{dtype}" for dtype in ("float32", "float64")),
    *("error_against_size_float64", "error_over_gallery_float64"),
)
"""Figures of commands of their own, beside those of `python -m plots`."""
FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(page, *languages):
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[2], re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE), line)
        for match in FENCE.finditer(text)
        for line in [text[: match.start()].count("\n") + 2]
    ]
    return [block for block in found if block.language in languages]


def run(page):
    """Runs the page's Python from top to bottom in one namespace, and returns that."""
    namespace = {"__name__": "__main__"}
    for block in blocks(page, "python", "pycon"):
        if ">>> " in block.code:
            test = doctest.DocTestParser().get_doctest(
                block.code, namespace, page.name, str(page), block.line
            )
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            namespace.update(test.globs)
        else:
            padded = "\n" * (block.line - 1) + block.code  # for the line numbers of tracebacks
            exec(compile(padded, str(page), "exec"), namespace)  # noqa: S102 - our own pages
    return namespace


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python", "pycon")], ids=name_of
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=name_of)
def test_the_commands_of_a_page_exist(page):
    lines = [line for block in blocks(page, "sh") for line in block.code.splitlines()]
    problems = [f"{line}: {problem}" for line in lines if (problem := problem_of(line))]
    assert problems == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    here = [link for link in links if "://" not in link]
    # Made from the registry, from results/ and from docs/data/ when the site is built.
    generated = "strategies/", *(f"figures/{name}.svg" for name in (*figures(), *BUILT))
    assert [
        link for link in here if not ((page.parent / link).exists() or link.startswith(generated))
    ] == []


def problem_of(line):
    """What keeps a line of shell from being run, if anything."""
    words = [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]
    if not words:
        return None
    program, *arguments = words
    program = program.removeprefix(".venv/bin/")
    if program == "make":
        makefile = (ROOT / "Makefile").read_text()
        missing = [word for word in arguments if not re.search(f"^{word}:", makefile, re.MULTILINE)]
        return f"no target {missing}" if missing else None
    if program == "backward-strategies":
        return problem_of_subcommand(arguments)
    if program == "python" and arguments[:2] == ["-m", "strategies"]:
        return problem_of_subcommand(arguments[2:])
    if program == "python" and arguments[0] == "-m":
        return None if importlib.util.find_spec(arguments[1]) else f"no module {arguments[1]}"
    installed = Path(sys.executable).parent / program
    return None if installed.exists() or shutil.which(program) or program == "cd" else "unknown"


def problem_of_subcommand(arguments):
    """Parses the arguments as the command line would, without running anything."""
    command = typer.main.get_command(app)
    try:
        while hasattr(command, "commands") and arguments:
            command, arguments = command.commands[arguments[0]], arguments[1:]
        command.make_context("", list(arguments))
    except KeyError as name:
        return f"no subcommand {name}"
    except typer.TyperException as error:
        return error.format_message()
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["QRInverse", "QRInverseByProducts"])
def test_a_strategy_that_is_shown_passes_every_check(name):
    check_strategy(run(ROOT / "docs" / "adding-a-strategy.md")[name]).raise_if_failed()


def test_the_first_strategy_that_is_shown_is_right_in_every_operation():
    example = run(ROOT / "docs" / "adding-a-strategy.md")["QRInverse"]()
    for operation in operations.names():
        case = Case(operation, (6, 6), batch=2)
        exact = gradient(operation, case.inputs(), case.cotangents(forward(case, example)))
        computed = operations.get(operation).defined(backward_of(case, example)())
        assert exact.relative_error(computed) < 1e-12


def test_the_first_strategy_that_is_shown_fits_on_twenty_lines():
    codes = [block.code for block in blocks(ROOT / "docs" / "adding-a-strategy.md", "python")]
    (code,) = [code for code in codes if "class QRInverse(" in code]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
