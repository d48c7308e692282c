"""The study behind docs/accuracy.md, on a few small cases."""

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from plots.accuracy_study import experiments
from plots.accuracy_study.__main__ import app

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
FEW = {"MATRICES": ["kahan", "wilkinson_growth"], "SIZES": [4, 8], "KAHAN_SIZES": [8, 48]}
FEW |= {"LARGEST_POWER": {torch.float32: 2, torch.float64: 2}, "SEEDS": [0]}
LINKED = re.findall(r"\(figures/(\w+)\.svg\)", PAGE.read_text())


@pytest.mark.slow
def test_figures_and_tables_are_those_of_the_page(tmp_path, monkeypatch):
    for name, value in FEW.items():
        monkeypatch.setattr(experiments, name, value)
    kept = str(tmp_path / "study.json.gz")
    for arguments in (["measure", kept], ["draw", kept, "--figures", str(tmp_path)]):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
    assert LINKED
    assert set(LINKED) <= {path.stem for path in tmp_path.glob("*.svg")}
    text = done.stdout
    assert "| native | [[0.0, 0.0], [0.0, 0.0]] |" in text
    assert "| triangular_solve | [[6.0, -3.0], [-4.0, 2.0]] |" in text
    (kahan,) = re.findall(r"LU of Kahan's matrix.*\n\n(\|[^*]*\|)\n", text)
    head, _, *rows = (line.strip("| ").split(" | ") for line in kahan.splitlines())
    largest = dict(zip(head, map(float, rows[-1]), strict=True))
    assert largest["svd_truncated_pinv"] > 1e-13 > 1e-15 > largest["triangular_solve"]
