import io
import json

import pandas as pd
import pytest
from rich.console import Console

from strategies.selection import recommendation
from strategies.selection.rows import load
from strategies.selection.verdicts import Criteria, judge


@pytest.fixture
def judged(rows_of, at_speed, order):
    cells = [
        rows_of(at_speed("native", 1), at_speed("qr_pinv", 4)),
        rows_of(at_speed("native", 1, 1.1), at_speed("qr_pinv", 1, 1.1), m=16, batch=7),
        rows_of({"strategy": "native", "status": "timeout"}, m=9000),
    ]
    return judge(pd.concat(cells, ignore_index=True), order)


def text_of(table):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_the_overview_names_a_strategy_a_case(judged):
    lines = text_of(recommendation.overview(judged)).splitlines()
    assert any("64x8" in line and "qr_pinv" in line and "4" in line for line in lines)
    assert any("7 of 16x8" in line and line.split()[4:6] == ["native", "qr_pinv"] for line in lines)
    assert any("9000x8" in line and "timeout" in line for line in lines)


def test_what_all_cases_share_is_said_once(judged):
    title, *lines = text_of(recommendation.overview(judged)).splitlines()
    assert title.strip() == "What to use, float64, cpu"
    assert not any("float64" in line for line in lines)


def test_the_ranking_shows_ratio_interval_and_verdict(judged):
    text = text_of(recommendation.ranking(judged[judged["m"].eq(64)]))
    assert "qr_pinv ←" in text
    assert "4.00" in text
    assert "slower" in text


def test_the_json_holds_what_the_verdict_rests_on(judged, tmp_path):
    recommendation.write(judged, Criteria(), tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    assert (content["format"], content["version"]) == (recommendation.FORMAT, 1)
    by_m = {cell["m"]: cell for cell in content["cells"]}
    assert by_m[64]["chosen"] == "qr_pinv"
    assert by_m[9000]["chosen"] is None
    best = by_m[64]["strategies"][0]
    assert best["verdict"] == "best"
    assert best["source"] == "here/run.json"
    assert content["provenance"][0]["machine"] == "here"


def test_real_results_can_be_recommended_from(asv_folder, order):
    judged = judge(load(asv_folder), order)
    content = recommendation.as_json(judged, Criteria())
    assert all(cell["chosen"] for cell in content["cells"])
    assert json.dumps(content)


def test_an_amount_has_a_unit_of_its_size():
    assert recommendation.seconds(12.3) == "12.3 s"
    assert recommendation.seconds(4.2e-8) == "0.042 µs"
    assert recommendation.seconds(float("nan")) == "-"
    assert recommendation.size(3) == "3 B"
