import io

import msgspec
import pytest
from by_hand import cell_of, run_of, took
from rich.console import Console

from strategies.measuring.measurement import Objective, Status, Timing
from strategies.selection import recommendation
from strategies.selection.eligibility import Criteria
from strategies.selection.verdicts import judge

OBJECTIVE = Objective.FORWARD_BACKWARD


@pytest.fixture
def cells():
    fast = took("qr_pinv", 0.001, backward=Timing(0.0003, 0.0003, 0.0003, (0.0003, 0.0003)))
    failed = took("native", status=Status.FAILED)
    run = run_of(
        cell_of(took("native", 0.004), fast),
        cell_of(took("native", 1, 1.05), took("qr_pinv", 1, 1.05), case="pinv 7x16x8"),
        cell_of(took("native", 1.2, 2.0), took("qr_pinv", 1, 2.0), case="pinv 512x8"),
        cell_of(failed, case="pinv 9000x8"),
    )
    return {cell.case.sizes: cell for cell in judge([run])}


def text_of(table):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


@pytest.fixture
def overview(cells):
    return text_of(recommendation.overview(list(cells.values()), OBJECTIVE))


def line_of(text, sizes):
    (line,) = (line for line in text.splitlines() if f" {sizes} " in line)
    return line.split(sizes)[1].split()


def test_the_overview_names_a_strategy_a_case(overview):
    assert line_of(overview, "64x8") == [*("qr_pinv", "4", "1", "ms", "300", "µs", "1.0e-15", "–")]
    assert line_of(overview, "7 of 16x8")[:2] == ["native", "qr_pinv"]
    assert line_of(overview, "9000x8") == ["–", "failed"]


def test_what_is_too_noisy_is_marked_and_the_mark_explained(overview, cells):
    assert line_of(overview, "512x8")[:3] == ["?", "qr_pinv", "native"]
    assert "? 1.2" in " ".join(line_of(overview, "512x8"))
    assert "? 4" not in " ".join(line_of(overview, "64x8"))
    assert "? too noisy to tell: the ends" in overview
    noisy, clear = (
        text_of(recommendation.ranking(cells[size], OBJECTIVE)) for size in ("512x8", "64x8")
    )
    assert "too noisy to tell" in noisy
    assert "? 1.2" in noisy
    assert "←" not in noisy
    assert "too noisy" not in clear


def test_the_verdict_in_words_says_what_where_and_how_sure(cells):
    assert recommendation.in_words(list(cells.values())) == [
        "Use native in 1 of 4 cases: pinv (7 of 16x8).",
        "Use qr_pinv in 1 of 4 cases: pinv (64x8).",
        "1 of 4 cases are clear, in 1 another strategy is as good, and 1 are too noisy to tell: "
        "measure again while nothing else runs.",
    ]


def test_what_all_cases_share_is_said_once(overview):
    title, *lines = overview.splitlines()
    assert title.strip() == "What to use, float64, cpu"
    assert not any("float64" in line for line in lines)


def test_the_ranking_shows_ratio_interval_and_verdict(cells):
    text = text_of(recommendation.ranking(cells["64x8"], OBJECTIVE))
    assert "qr_pinv ←" in text
    assert "4.00-4.00" in text
    assert "slower" in text


def test_the_json_holds_what_the_verdict_rests_on_and_the_marks(cells):
    found = recommendation.as_json(list(cells.values()), Criteria())
    content = msgspec.json.decode(msgspec.json.encode(found))
    by_m = {cell["m"]: cell for cell in content["cells"]}
    assert (by_m[64]["chosen"], by_m[9000]["chosen"]) == ("qr_pinv", None)
    assert by_m[64]["source"] == "here/run.json"
    noisy = {m: cell["strategies"][0]["speedup_too_noisy"] for m, cell in by_m.items()}
    assert noisy == {64: False, 16: False, 512: True, 9000: False}
    best = by_m[64]["strategies"][0]
    assert (best["verdict"], best["forward_backward"][0]) == ("best", 0.001)
    assert content["provenance"][0]["name"] == "here"
