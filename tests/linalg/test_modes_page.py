"""The page of modes says what the tests found, and the one that is kept is whole and green."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from modes_page import MODES, NUMBERS, Cell, page

from strategies import operations, registry

KEPT = (Path(__file__).parents[2] / "docs" / "modes.md").read_text(encoding="utf-8")
CELLS = [
    Cell(*key) for key in itertools.product(operations.names(), registry.built_in(), MODES, NUMBERS)
]
ONE = CELLS[0]


def table(text: str, operation: str) -> list[list[str]]:
    _, section = text.split(f"## `{operation}`\n")
    section, *_ = section.split("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if "---" not in line]


@pytest.mark.parametrize("operation", operations.names())
def test_the_kept_page_has_every_strategy_and_mode(operation: str):
    head, *rows = table(KEPT, operation)

    assert head == ["strategy", *MODES]
    assert [row[0] for row in rows] == [f"`{name}`" for name in registry.built_in()]
    assert {len(row) for row in rows} == {len(head)}


def test_no_cell_of_the_kept_page_failed_or_was_left_out():
    assert "✗" not in KEPT.split("##", 1)[1]
    assert "not run" not in KEPT


@pytest.mark.parametrize(
    ("outcomes", "entry"),
    [
        ({"passed"}, "✓"),
        ({"passed", "failed"}, "✗"),
        ({"passed", "no compiler"}, "(1)"),
    ],
)
def test_an_entry_is_as_good_as_the_worst_of_its_tests(outcomes, entry):
    text = page({cell: {"passed"} for cell in CELLS} | {ONE: outcomes})

    assert table(text, ONE.operation)[1][1].split()[0] == entry


def test_what_was_not_run_and_why_is_said_once_below():
    others = {cell: {"passed"} for cell in CELLS if cell != ONE}
    skipped = others | {ONE: {"passed", "no compiler"}, CELLS[2]: {"no compiler"}}

    assert page(skipped).endswith("\n\n(1) real: no compiler\n")
    assert page(others).endswith("\n\n(1) real: not run\n")
