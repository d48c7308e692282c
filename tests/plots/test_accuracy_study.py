"""The study behind docs/accuracy.md, on a few small cases."""

import re
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from plots import accuracy_study

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
LINKED = re.findall(r"\(figures/(\w+)\.svg\)", PAGE.read_text())


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    app = Typer()
    app.command()(accuracy_study.main)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy_study, "OPERATIONS", ("lu_factor", "pinv", "solve"))
        patch.setattr(accuracy_study, "SIZES", (4, 8))
        patch.setattr(accuracy_study, "KAHAN_SIZES", (8, 48))
        patch.setattr(accuracy_study, "SEEDS", (0,))
        result = CliRunner().invoke(app, ["--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.stdout


def test_every_figure_of_the_page_is_made(study):
    assert LINKED
    for name in LINKED:
        assert (study[0] / f"{name}.svg").exists()


def test_the_tables_say_what_the_page_says(study):
    text = study[1]
    assert "| native | [[0.0, 0.0], [0.0, 0.0]] |" in text
    assert "| triangular_solve | [[6.0, -3.0], [-4.0, 2.0]] |" in text
    kahan = text.partition("LU of Kahan's matrix")[2].partition("**\n")[2].partition("\n\n**")[0]
    head, _, *rows = (re.split(r" *\| *", line.strip("| ")) for line in kahan.strip().splitlines())
    largest = dict(zip(head, map(float, rows[-1]), strict=True))
    assert largest["svd_truncated_pinv"] > 1e-13 > 1e-15 > largest["triangular_solve"]
