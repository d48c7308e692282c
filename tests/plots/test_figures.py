import matplotlib as mpl
import pandas as pd
import pytest

from plots.figures import figures, save
from plots.style import NotDrawableError

LABELS = {
    "time_against_size": ["time, forward and backward", "size", "1 ms"],
    "error_against_conditioning": ["relative error of gradient", "condition number κ", "κ u"],
    "error_against_size": ["relative error of gradient", "κ u"],
    "error_over_gallery": ["relative error / κ u", "graded rows", "kahan"],
    "inverse_over_solve": ["time, inverse / solve", "backward alone", "solve, unstable: 2e+02"],
    "memory_of_tall": ["peak above the graph", "rows m", "two m × m", "1 MB"],
    "time_against_error": ["time, forward and backward", "relative error of gradient", "10 ms"],
    "peers": ["times as fast as native", "jax", "pinv 4096x16 (1.05 ms)"],
    "speedup_heatmap": ["times as fast as native", "1000 of 4x4", "0.5", "native", "4.1 µs"],
    "winners_map": ["tie", "4096x16"],
    "stability": [
        "stability ratio",
        "limit, 100",
        "JAX",
        "100.0% of 2",
        "none of 2",
        "none of 1",
        "≥ 10¹⁶",
    ],
    "regret_distribution": ["share of cases", "time over that of the fastest"],
}


def test_every_module_that_draws_is_a_figure():
    assert set(figures()) == set(LABELS)


@pytest.mark.parametrize("name", LABELS)
def test_it_says_what_it_shows_and_from_which_run(name, rows, texts):
    shown = texts(figures()[name](rows))
    assert set(LABELS[name]) <= set(shown)
    assert any("reference-machine · Reference CPU · 2023-11-14" in text for text in shown)


def test_without_rows_every_figure_says_what_is_missing(rows):
    for draw in figures().values():
        with pytest.raises(NotDrawableError):
            draw(rows.head(0))


def test_failures_are_no_obstacle(rows):
    lost = rows["strategy"].eq("qr_pinv") & rows["m"].eq(256)
    numbers = ["seconds", "backward_seconds", "speedup", "backward_speedup", "error", "peak_bytes"]
    rows.loc[lost, [*numbers, "ratio"]] = float("nan")
    rows.loc[lost, ["status", "verdict"]] = ["failed", "ineligible"]
    for draw in figures().values():
        draw(rows)


def test_a_figure_is_written_as_png_and_svg_and_the_same_each_time(rows, tmp_path):
    settings = dict(mpl.rcParams)
    for stem in ("first", "second"):
        save(figures()["winners_map"], rows, tmp_path / stem)
    assert dict(mpl.rcParams) == settings
    assert (tmp_path / "first.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_few_sizes_make_no_curve(rows):
    with pytest.raises(NotDrawableError, match="3 sizes"):
        figures()["time_against_size"](rows[rows["sizes"].isin(["16x16", "4096x16"])])


def test_only_one_machine_and_dtype_is_drawn(rows, texts):
    other = rows.assign(machine="another", dtype="float32").head(5)
    figure = figures()["speedup_heatmap"](pd.concat([rows, other]))
    assert any("float64 on cpu" in text for text in texts(figure))


def test_hard_cases_of_every_machine_are_drawn(rows, texts):
    hard = rows[rows["shows"].eq("stability")]
    elsewhere = hard[hard["operation"].eq("pinv")].assign(machine="another", operation="cholesky")
    assert {"solve", "cholesky"} <= set(texts(figures()["stability"](pd.concat([rows, elsewhere]))))


def test_a_strategy_that_only_ties_is_in_the_legend(rows, texts):
    rows.loc[rows["strategy"].eq("triangular_solve"), "verdict"] = "tie"
    rows = rows.assign(chosen=rows["strategy"].eq("explicit_inverse"))
    assert "triangular_solve" in texts(figures()["winners_map"](rows))
