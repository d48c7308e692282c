import importlib

import pytest
from matplotlib.figure import Figure

from plots.__main__ import FIGURES, save
from plots.style import NotDrawableError
from strategies.selection.rows import COLUMNS


def draw(name, rows):
    return importlib.import_module(f"plots.{name}").draw(rows)


def texts(figure):
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("name", FIGURES)
def test_it_says_from_which_run_it_comes(name, rows):
    figure = draw(name, rows)
    assert isinstance(figure, Figure)
    (foot,) = [text for text in texts(figure) if "reference-machine" in text]
    for part in ("Reference CPU", "2 threads", "torch 2.13.0", "commit 01234567", "2023-11-14"):
        assert part in foot


@pytest.mark.parametrize("name", FIGURES)
def test_it_is_written_as_png_and_svg_and_the_same_each_time(name, rows, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for stem in (first, second):
        save(draw(name, rows), stem)
    assert first.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert first.with_suffix(".svg").read_bytes() == second.with_suffix(".svg").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_without_rows_it_says_what_is_missing(name, rows):
    with pytest.raises(NotDrawableError):
        draw(name, rows.head(0))


@pytest.mark.parametrize("name", FIGURES)
def test_failures_are_no_obstacle(name, rows):
    lost = rows["strategy"].eq("qr_pinv") & rows["m"].eq(256)
    numbers = [c for c in COLUMNS if c.endswith("seconds") or c in ("error", "peak_bytes")]
    rows.loc[lost, [*numbers, "speedup_over_native"]] = float("nan")
    rows.loc[lost, "status"] = "timeout"
    draw(name, rows)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("time_against_size", ["time of one backward", "size", "1 ms"]),
        ("error_against_conditioning", ["relative error of gradient", "condition number κ", "κ u"]),
        ("error_against_size", ["relative error of gradient", "κ u"]),
        ("error_over_gallery", ["relative error / κ u", "graded rows", "kahan"]),
        ("memory_of_tall", ["peak above the graph", "rows m", "two m × m", "1 MB"]),
        ("time_against_error", ["time of one backward", "relative error of gradient", "10 ms"]),
        ("peers", ["times as fast as native", "jax"]),
        ("speedup_heatmap", ["times as fast as native", "1000 of 4x4", "0.5"]),
        ("winners_map", ["tie", "4096x16"]),
        ("regret_distribution", ["share of cases", "time over the fastest's"]),
    ],
)
def test_axes_are_labelled_with_units(name, labels, rows):
    assert set(labels) <= set(texts(draw(name, rows)))
