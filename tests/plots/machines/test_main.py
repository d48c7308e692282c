"""From the results of several machines to a page and its figures."""

import re
from pathlib import Path

import msgspec
import pytest
from by_hand import STABLE, UNSTABLE, cell

from plots import figures, rows
from plots.machines import scaling
from plots.machines.__main__ import main
from plots.machines.page import parts as parts_of
from plots.style import NotDrawableError
from strategies import operations, registry
from strategies.measuring import store
from strategies.measuring.machine import Machine
from strategies.measuring.store import Run
from strategies.selection import stability

HERE = Machine("here", "abacus", threads=2, torch="2.13.0", started_at="2023-11-14")
ALONE = msgspec.structs.replace(
    HERE, name="alone", threads=1, load=0.25, noise=1.03, instruction_set="AVX2"
)
SIZES = 8, 16, 32, 64
PARTS = (
    *("top", "machines", "summary", "overview", "machines_size", "cases", "losses", "flips"),
    *("carried", "drawn"),
)


def grid(machine, native, fused, qr_pinv):
    cells = [
        cell(f"inv {n}x{n}", 1.01, native=native * n, fused=fused * n, qr_pinv=qr_pinv * n)
        for n in SIZES
    ]
    return Run("grid", machine, {}, tuple(cells))


@pytest.fixture(autouse=True)
def native(monkeypatch):
    """The evidence of native, which is unstable; all others are stable."""
    known = dict.fromkeys(registry.available(), STABLE)
    known["native"] = UNSTABLE
    monkeypatch.setattr(stability, "_shipped", lambda: dict.fromkeys(operations.names(), known))
    return known


@pytest.fixture
def runs():
    """On one machine fused is twice as fast as native, on the other qr_pinv is slower than it."""
    return [grid(HERE, 1.0, 0.5, 2.0), grid(ALONE, 1.0, 4.0, 1.25)]


def test_machines_are_told_with_load_and_noise_and_what_nobody_has_is_left_out(runs):
    lines = parts_of(runs)["machines"].splitlines()
    assert "GPU" not in lines[0]
    assert lines[2].startswith("| `alone` | abacus | AVX2 | 2.13.0 |")
    assert lines[2].endswith("| 1 | 0.25 | 1.03 | 4 |")
    assert lines[3].endswith("| 2 | – | – | 4 |")


def test_losses_are_counted_and_listed_as_wins_are(runs):
    parts = parts_of(runs)
    assert "in 4 of 8 the strategy to use is faster" in parts["top"]
    assert "in 4 it is slower" in parts["top"]
    assert "| `alone` | 0 | 4 | 0.8× | 0.80× to 0.80× |" in parts["summary"]
    assert "| `inv` | float64 | 0.8× · 4▼ | 2× · 4▲ |" in parts["overview"]
    assert "where native is stable**: in no case is native stable" in parts["losses"]
    assert "| `inv` | 4 of 4, down to 0.80× | 0 of 4 |" in parts["losses"]
    assert "| inv 8x8 float64 cpu | `alone` | `qr_pinv` | 0.80 (0.78 to 0.82) |" in parts["losses"]


def test_a_loss_where_native_may_be_used_is_listed_in_the_open(runs, native):
    native["native"] = native["fused"]
    losses = parts_of(runs)["losses"]
    # The fastest that may be used is native then.
    assert "where native is stable**: 0 of 8 cases" in losses
    assert "<details" not in losses


def test_a_flip_is_flagged_and_says_what_differs_and_what_it_costs(runs):
    parts = parts_of(runs)
    assert "| 64x64 ⇄ | `qr_pinv` 0.80× ▼ | `fused` 2.00× ▲ |" in parts["cases"]
    assert "| `alone`, `here` | 1 against 2 threads | 4 | 0 | 0 | 4 |" in parts["flips"]
    assert "| inv 8x8 float64 cpu | `qr_pinv` | `fused` | 3.20× | 4.00× |" in parts["flips"]
    same = parts_of([runs[0], grid(ALONE, 1.0, 0.5, 2.0)])
    assert "⇄" not in same["cases"]
    assert "<details" not in same["flips"]


def test_the_regret_of_every_policy_on_every_machine(runs):
    carried = parts_of(runs)["carried"]
    assert "| `alone` | `alone` | 4 | 100% | 1.00 | 1.00 | 1.00 | 0.80 | 4 |" in carried
    assert "| `alone` | `here` | 4 | 0% | 4.00 | 4.00 | 4.00 | 0.50 | 4 |" in carried
    assert "| `here` | `alone` | 4 | 0% | 3.20 | 3.20 | 3.20 | 0.25 | 4 |" in carried
    listed = "| inv 8x8 float64 cpu | `here` | `alone` | `fused` | 0.25 (0.25 to 0.26) | may not be used |"
    assert listed in carried


def test_draws_are_shown_where_there_are_some(runs):
    assert parts_of(runs)["drawn"] == "None were measured."
    draw = Run("draw", HERE, {}, (cell("inv 9x9", 1.01, native=1.0, fused=2.0, qr_pinv=4.0),))
    drawn = parts_of([*runs, draw])["drawn"]
    assert "| `here` | 1 | 100% | 1.00 | 1.00 | 1.00 | 0.50 | 1 |" in drawn


def test_one_machine_makes_a_page_too(runs):
    parts = parts_of(runs[:1])
    assert parts["flips"] == "There is one machine, so nothing flips."
    assert parts["top"].startswith("4 cases on one machine: in 4 of 4 ")
    assert "Two machines" not in parts["top"]


def test_the_figures_say_what_they_show_and_where_it_was_measured(runs, texts):
    frame = rows.table(runs)
    for draw in scaling.FIGURES.values():
        shown = texts(draw(frame))
        assert "inv" in shown
        footer = " ".join(shown)
        assert "abacus · 2 threads" in footer
        assert "abacus · 1 thread ·" in footer


def test_too_few_sizes_make_no_curve(runs):
    few = [msgspec.structs.replace(run, cells=run.cells[:2]) for run in runs]
    with pytest.raises(NotDrawableError, match="at 3 sizes"):
        scaling.against_size(rows.table(few))


def test_the_command_fills_the_page_and_draws(run, runs, page, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda draw, rows, stem: drawn.append(stem.name))
    for each in runs:
        store.write(tmp_path / "results" / f"{each.machine.name}.json", each)
    filled, folder = page(*PARTS), tmp_path / "figures"
    done = run(main, filled, "--results", tmp_path / "results", "--figures", folder)
    assert done.exit_code == 0, done.output
    text = filled.read_text()
    assert "\nold\n" not in text
    assert re.findall(r"<!-- (\w+): begin", text) == list(PARTS)
    assert drawn == list(scaling.FIGURES)
    assert "![machines size](figures/machines_size.svg)" in text


def test_of_a_figure_that_cannot_be_drawn_the_page_says_why(run, runs, page, tmp_path):
    few = msgspec.structs.replace(runs[0], cells=runs[0].cells[:2])
    store.write(tmp_path / "run.json", few)
    filled = page(*PARTS)
    assert run(main, filled, "--results", tmp_path, "--figures", tmp_path).exit_code == 0
    said = "Not drawn: no operation was timed at 3 sizes."
    assert said in filled.read_text()


def test_the_page_in_the_documentation_has_the_markers():
    text = (Path(__file__).parents[3] / "docs" / "machines.md").read_text()
    assert re.findall(r"<!-- (\w+): begin", text) == list(PARTS)
