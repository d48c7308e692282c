"""The tables of modes say what the tests found, and what is kept is whole and green."""

import itertools
from pathlib import Path

import pytest
import torch

from plots.modes import KEPT, MODES, NUMBERS, Cell, load, main, save, tables
from strategies import operations, registry

_, FOUND = load(Path(__file__).parents[2] / KEPT)
CELLS = [
    Cell(*key) for key in itertools.product(operations.names(), registry.built_in(), MODES, NUMBERS)
]
ONE = CELLS[0]
PASSED = {cell: {"passed"} for cell in CELLS}


def table(text, operation):
    _, section = text.split(f"## `{operation}`\n")
    section, *_ = section.split("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if "---" not in line]


@pytest.mark.parametrize("operation", operations.names())
def test_a_table_has_every_strategy_and_mode(operation):
    head, *rows = table(tables(FOUND), operation)
    assert head == ["strategy", *MODES]
    assert [row[0] for row in rows] == [f"`{name}`" for name in registry.built_in()]
    assert {len(row) for row in rows} == {len(head)}


def test_no_kept_cell_failed_or_was_left_out():
    assert "failed" not in set().union(*FOUND.values())
    assert set(CELLS) <= FOUND.keys()


def test_a_page_says_the_release_and_has_the_tables(tmp_path):
    page, kept = tmp_path / "page.md", tmp_path / "modes.json.gz"
    page.write_text("<!-- modes: begin -->\n<!-- modes: end -->\n")
    save(PASSED, kept)
    main(page, kept)
    assert f"This is the run of PyTorch {torch.__version__}." in page.read_text()
    assert len(table(page.read_text(), "inv")) == 1 + len(registry.built_in())


def test_what_was_saved_is_loaded(tmp_path):
    found = {CELLS[0]: {"passed", "no compiler"}, CELLS[1]: {"failed"}}
    save(found, tmp_path / "modes.json.gz")
    release, loaded = load(tmp_path / "modes.json.gz")
    assert (release, loaded) == (torch.__version__, found)


@pytest.mark.parametrize(
    ("outcomes", "entry"),
    [({"passed"}, "✓"), ({"passed", "failed"}, "✗"), ({"passed", "no compiler"}, "(1)")],
)
def test_an_entry_is_as_good_as_the_worst_of_its_tests(outcomes, entry):
    assert table(tables(PASSED | {ONE: outcomes}), ONE.operation)[1][1].split()[0] == entry


def test_what_was_not_run_and_why_is_said_once_below():
    others = {cell: found for cell, found in PASSED.items() if cell != ONE}
    skipped = others | {ONE: {"passed", "no compiler"}, CELLS[2]: {"no compiler"}}
    assert tables(skipped).endswith("\n\n(1) real: no compiler")
    assert tables(others).endswith("\n\n(1) real: not run")
