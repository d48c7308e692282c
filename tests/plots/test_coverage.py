"""The page of coverage: two summaries, all calls, and where they were measured."""

from benchmarks.coverage.results import Coverage, Ratio, Row
from plots import coverage as plotted


def coverage(mode, failures=()):
    return Coverage(
        command="python -m benchmarks.coverage",
        processor="Reference CPU",
        threads=2,
        torch="2.13.0",
        date="2023-11-14",
        rows=[Row("inv", mode, "4x4", Ratio(2.0, 1.9, 2.1))],
        failures=list(failures),
    )


def test_each_part_has_a_summary_all_calls_and_its_place(page, tmp_path, monkeypatch):
    kept = {name: tmp_path / f"{name}.json.gz" for name in plotted.KEPT}
    monkeypatch.setattr(plotted, "KEPT", kept)
    coverage("eager", ["det, eager, 4x4: no"]).save(kept["coverage"])
    coverage("compiled").save(kept["compiled"])
    filled = page(*kept)
    plotted.main(filled)
    eager, compiled = filled.read_text().split("<!-- compiled: begin -->")
    assert "| eager | 1 | 2.00 | 2.00 | 0 |" in eager
    assert "| inv | eager | 2 |" in eager
    assert "Refused: det, eager, 4x4: no" in eager
    assert "| inv | compiled | 2 |" in compiled
    for part in (eager, compiled):
        assert "on Reference CPU with 2 threads, torch 2.13.0, 2023-11-14." in part
