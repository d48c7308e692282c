import math
from pathlib import Path

import asv
import msgspec
import pytest
from asv.graph import GraphSet

from plots.dashboard import page

ASV_PAGE = (Path(asv.__file__).parent / "www" / "index.html").read_text()
BENCHMARKS = {
    "pinv.Single.time_backward": {
        "param_names": ["strategy", "shape", "batch", "dtype", "device"],
        "params": [["'native'"], ["'64x8'", "'16x4 rank=2'"], ["0"], ["'float64'"], ["'cpu'"]],
    }
}


def recorded(machine, values):
    """What asv has of the benchmark: a value for each combination of its parameters."""
    graphs = GraphSet()
    for name in BENCHMARKS:
        graphs.get_graph(name, {"machine": machine}).add_data_point(0, values)
    return graphs


def draw(rows, out, wanted):
    assert {"peers", "machines_size"} <= set(wanted)
    return [("peers", None), ("machines_size", None), ("other", "no rows")]


@pytest.fixture
def added(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "draw_all", draw)

    def add(machine="reference-machine", asv_page=ASV_PAGE, runs=runs):
        (tmp_path / "index.html").write_text(asv_page)
        page.add(tmp_path, runs, page.graphs_of(BENCHMARKS, recorded(machine, [1e-3, math.nan])))
        return (tmp_path / "index.html").read_text()

    return add


def test_every_timed_case_has_a_line_by_both_objectives(added):
    lines = [line for line in added().splitlines() if line.startswith("<tr data-operation")]
    assert len(lines) == 13
    (line,) = (line for line in lines if "<td>pinv</td><td>64x8</td>" in line)
    assert "<td>triangular_solve</td><td>qr_pinv</td>" in line
    assert '<td data-value="3">3×</td><td data-value="1.365e-06">1.37 µs</td>' in line
    assert "triangular_solve 3×</a></td></tr>" in line


def test_what_a_busy_machine_says_is_marked(runs, added):
    assert "too noisy to tell" not in added()
    busy = [
        msgspec.structs.replace(run, machine=msgspec.structs.replace(run.machine, noise=2.0))
        for run in runs
    ]
    lines = added(runs=busy).splitlines()
    (line,) = (line for line in lines if "<td>pinv</td><td>64x8</td>" in line)
    assert '<td>too noisy to tell</td><td data-value="3">? 3×</td>' in line


def test_machines_have_a_column_and_a_filter_and_figures_that_were_drawn_are_shown(added):
    content = added()
    assert 'src="figures/peers.svg"' in content
    assert 'src="figures/machines_size.svg"' in content
    assert "other.svg" not in content
    assert "<td>cpu</td><td>reference-machine</td>" in content
    assert "<option>reference-machine</option>" in content
    assert 'data-machine="reference-machine"' in content


def test_an_entry_leads_to_the_graph_of_its_case_and_machine(added):
    content = added()
    assert content.count("#pinv.Single.time_backward?") == 1
    assert "p-shape=%2764x8%27" in content
    assert "machine=reference-machine" in content
    assert "#pinv.Single.time_backward?" not in added(machine="another")


def test_no_entry_leads_to_what_asv_has_not_recorded_or_to_a_program():
    assert len(page.graphs_of(BENCHMARKS, recorded("here", [math.nan, 1e-3]))) == 1
    assert page.graphs_of(BENCHMARKS, recorded("here", [math.nan, math.nan])) == {}
    assert page.graphs_of(BENCHMARKS, GraphSet()) == {}
    steps = {"param_names": ["way", "program"], "params": [["'auto'"], ["'qp'"]]}
    assert page.graphs_of({"programs.time_step": steps}, GraphSet()) == {}


def test_a_page_of_another_asv_is_refused(added):
    with pytest.raises(LookupError, match="no place"):
        added(asv_page=ASV_PAGE.replace("nav-li-", "menu-"))
