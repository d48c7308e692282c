"""The study behind docs/accuracy.md, on a few small cases."""

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from plots.accuracy_study import experiments
from plots.accuracy_study.__main__ import app

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
FEW = {"MATRICES": ["kahan", "wilkinson_growth"], "SIZES": [4, 8], "KAHAN_SIZES": [8, 48]}
FEW |= {"LARGEST_POWER": {torch.float32: 2, torch.float64: 2}, "SEEDS": [0]}
LINKED = re.findall(r"\(figures/(\w+)\.svg\)", PAGE.read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The names of the figures, and what is printed."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FEW.items():
            patch.setattr(experiments, name, value)
        measured = CliRunner().invoke(app, ["measure", str(out / "study.json.gz")])
    assert measured.exit_code == 0, measured.output
    drawn = CliRunner().invoke(app, ["draw", str(out / "study.json.gz"), "--figures", str(out)])
    assert drawn.exit_code == 0, drawn.output
    return {path.stem for path in out.glob("*.svg")}, drawn.stdout


def test_every_figure_of_the_page_is_made(made):
    assert LINKED
    assert set(LINKED) <= made[0]


def test_the_tables_say_what_the_page_says(made):
    _, text = made
    assert "| native | [[0.0, 0.0], [0.0, 0.0]] |" in text
    assert "| triangular_solve | [[6.0, -3.0], [-4.0, 2.0]] |" in text
    (kahan,) = re.findall(r"LU of Kahan's matrix.*\n\n(\|[^*]*\|)\n", text)
    head, _, *rows = (line.strip("| ").split(" | ") for line in kahan.splitlines())
    largest = dict(zip(head, map(float, rows[-1]), strict=True))
    assert largest["svd_truncated_pinv"] > 1e-13 > 1e-15 > largest["triangular_solve"]
