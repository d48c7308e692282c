"""The page of an oracle's reports: what its tables say, and that a square is there for each quantity."""

import pytest

from plots.oracle.__main__ import main
from plots.oracle.figure import draw, worst
from strategies.files.documents import json_text
from strategies.oracle.grader import VERDICTS
from strategies.oracle.report import Entry, Report


def entry(quantity, worst, **counts):
    return Entry(
        operation="inv",
        quantity=quantity,
        counts=dict.fromkeys(VERDICTS, 0) | counts,
        worst=worst,
        worst_case="inv/plain/1",
        smallest="inv/plain/0" if "wrong" in counts else None,
    )


LIBRARIES = {
    "strategies, torch 2.13.0": [entry("value", 1.0, right=3)],
    "PyTorch 2.13.0": [
        *(entry("hvp", 1.0, right=3), entry("hvp.other_way", 1e99, wrong=2, right=1))
    ],
    "PyTorch 2.15.0": [entry("hvp", 1.0, right=3), entry("hvp.other_way", 2.0, right=3)],
}
REPORTS = [Report(library=name, seed=0, cases=1, entries=of) for name, of in LIBRARIES.items()]


def test_the_worst_of_several_ways_counts():
    assert worst(REPORTS)["PyTorch 2.13.0", "inv", "hvp"] == "wrong"


def test_each_library_has_four_squares_an_operation():
    (axes,) = draw(REPORTS).axes
    assert len(axes.patches) == 4 * len(REPORTS)


def test_the_page_tells_failures_and_versions(page, tmp_path):
    kept, filled = tmp_path / "reports", page("libraries", "failures", "versions")
    kept.mkdir()
    for i, each in enumerate(REPORTS):
        (kept / f"{i}.json").write_text(json_text(each))
    main(filled, kept, tmp_path)
    text = filled.read_text()
    assert "| PyTorch 2.13.0 | 6 | 4 | 0 | 2 | 0 |" in text
    assert "| `inv` | hvp.other way | `inv/plain/1` | `inv/plain/0` | – | 2 | 3 | ∞ |" in text
    assert "| `inv` | hvp.other way | 2, ∞ | 0, 2 |" in text
    assert (tmp_path / "oracle.svg").exists()


def test_a_folder_without_reports_is_named(page, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(page("libraries"), tmp_path, tmp_path)
    assert f"{tmp_path}: has no report" in capsys.readouterr().err
