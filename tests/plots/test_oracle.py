"""The page of an oracle's reports: what its tables say, and that a square is there for each quantity."""

import pytest

from plots.oracle.__main__ import main
from plots.oracle.figure import draw, frame
from strategies.files import json_text
from strategies.oracle.grader import VERDICTS
from strategies.oracle.report import Entry, Report


def entry(quantity, worst, **counts):
    filled = {name: counts.get(name, 0) for name in VERDICTS}
    failing = "inv/plain/0" if counts.get("wrong") or counts.get("unstable") else None
    return Entry(
        operation="inv",
        quantity=quantity,
        counts=filled,
        worst=worst,
        worst_case="inv/plain/1",
        smallest=failing,
    )


def report(library, *entries):
    return Report(library=library, seed=0, cases=1, entries=list(entries))


@pytest.fixture
def reports():
    return [
        report("strategies, torch 2.13.0", entry("value", 1.0, right=3)),
        report(
            "PyTorch 2.13.0",
            entry("hvp", 1.0, right=3),
            entry("hvp.other_way", 1e99, wrong=2, right=1),
        ),
        report("PyTorch 2.15.0", entry("hvp", 1.0, right=3), entry("hvp.other_way", 2.0, right=3)),
    ]


def test_the_worst_of_several_ways_counts(reports):
    rows = frame(reports)
    assert rows[rows["library"].eq("PyTorch 2.13.0")]["verdict"].tolist() == ["wrong"]


def test_each_library_has_four_squares_an_operation(reports):
    (axes,) = draw(frame(reports)).axes
    assert len(axes.patches) == 4 * len(reports)


def test_the_page_tells_failures_and_versions(reports, tmp_path):
    page, kept = tmp_path / "page.md", tmp_path / "reports"
    kept.mkdir()
    names = ("libraries", "failures", "versions")
    page.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in names))
    for i, each in enumerate(reports):
        (kept / f"{i}.json").write_text(json_text(each))
    main(page, kept, tmp_path)
    text = page.read_text()
    assert "| PyTorch 2.13.0 | 6 | 4 | 0 | 2 | 0 |" in text
    assert "| `inv` | hvp.other way | `inv/plain/1` | `inv/plain/0` | – | 2 | 3 | ∞ |" in text
    assert "| `inv` | hvp.other way | 2, ∞ | 0, 2 |" in text
    assert (tmp_path / "oracle.svg").exists()
