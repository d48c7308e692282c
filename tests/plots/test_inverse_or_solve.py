"""Forming the inverse against solving: by results made by hand, and what the kept results say."""

from pathlib import Path

import pytest
from by_hand import timing
from typer import Typer
from typer.testing import CliRunner

from plots import marked
from plots.inverse_or_solve import PART, TABLES, main, parts
from strategies.measuring.case import Case
from strategies.measuring.machine import Machine
from strategies.measuring.measurement import Cell, Measurement
from strategies.measuring.store import Run, load

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
README = f"before\n<!-- {PART}: begin -->\n(answer)\n<!-- {PART}: end -->\nafter\n"
PAGE = f"{README}<!-- {TABLES}: begin -->\n(tables)\n<!-- {TABLES}: end -->\n"
SIZES = "32x32", "256x256", "160x8x8"


def cell(case, both, backward, **others):
    """The inverse takes so many times as long as solves; other strategies so many seconds."""
    seconds = {"triangular_solve": 1.0, "explicit_inverse": both, **others}
    return Cell(
        Case.parse(case),
        tuple(
            Measurement(
                name,
                forward_backward=timing(time),
                backward=timing(backward if name == "explicit_inverse" else 1.0),
            )
            for name, time in seconds.items()
        ),
    )


@pytest.fixture
def said():
    """What is said of these cells."""
    machine = Machine("here", started_at="2026-11-20T10:00:00Z")
    return lambda *cells: "\n".join(parts([Run("grid", machine, {}, cells)]).values())


def test_where_the_inverse_takes_longer_one_solves(said):
    text = said(*(cell(f"det {size}", 2.0, 3.0) for size in SIZES))
    assert "- **Solve** in `det`, for one backward per forward: " in text
    assert "both together take 2 times as long for single matrices with n < 128" in text
    assert "| `det` | 2 / 3 | 2 / 3 | 2 / 3 | stable |" in text
    assert "Form it" not in text


def test_where_it_takes_less_one_forms_it(said):
    text = said(*(cell(f"inv {size}", 0.5, 0.25) for size in SIZES))
    assert "- **Form it** where it is the result, in `inv`: 0.5 of the time." in text
    assert "| `inv` | **0.5** / **0.25** |" in text


def test_what_pays_by_the_backward_alone_is_said_apart(said):
    text = said(*(cell(f"solve {size}", 2.0, 0.25) for size in SIZES))
    assert (
        "one forward serves many backwards, in `solve`: a backward takes 0.25 of the time" in text
    )
    assert "| `solve` | 2 / **0.25** |" in text


def test_what_is_unstable_is_never_recommended(said):
    text = said(*(cell(f"pinv {size}", 0.5, 0.5) for size in SIZES))
    assert "- **Never** form (AᴴA)⁻¹Aᴴ by the normal equations, in `pinv`" in text
    assert "Form it" not in text
    assert "| `pinv` | (0.5 / 0.5) | (0.5 / 0.5) | (0.5 / 0.5) | unstable, " in text


def test_a_svd_is_named_up_to_the_size_where_it_is_the_fastest(said):
    svd = {"32x32": 0.1, "256x256": 9.0, "160x8x8": 0.1}
    text = said(*(cell(f"pinv {n}", 0.5, 0.5, svd_truncated_pinv=svd[n]) for n in SIZES))
    assert "QR and SVD only for most single `pinv` with n ≤ 32" in text


def test_how_often_the_compiled_kernel_is_the_default(said):
    text = said(
        cell("inv 8x8", 1.0, 1.0, fused=0.1),
        cell("inv 9x9", 1.0, 1.0, fused=9.0),
    )
    assert "`fused`, compiled kernels, in 1 of 2 cases" in text


def test_right_hand_sides_have_lines_of_their_own(said):
    text = said(*(cell(f"solve {size} k={k}", k, 0.5) for size in SIZES for k in (1, 4)))
    assert "| `solve` | 1 | 1 / **0.5** |" in text
    assert "| `solve` | 4 | 4 / **0.5** |" in text


def test_the_command_replaces_what_is_between_the_markers(tmp_path):
    app, (readme, page) = Typer(), (tmp_path / "one.md", tmp_path / "other.md")
    app.command()(main)
    readme.write_text(README)
    page.write_text(PAGE)
    results = RESULTS / "epyc-1thread"
    done = CliRunner().invoke(app, [str(readme), str(page), "--results", str(results)])
    assert done.exit_code == 0, done.output
    found = parts(load(results))
    assert readme.read_text() == README.replace("(answer)", found[PART])
    assert page.read_text() == PAGE.replace("(answer)", found[PART]).replace(
        "(tables)", found[TABLES]
    )


@pytest.fixture(scope="module")
def kept():
    return parts(load(RESULTS / "epyc-2cores"))


def test_readme_says_what_the_kept_results_say(kept):
    assert kept[PART] in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_has_a_place_for_the_answer_and_its_tables():
    assert all(marked.has(ROOT / "docs" / "answer.md", name) for name in (PART, TABLES))


@pytest.mark.parametrize("machine", ["epyc-1thread", "xeon-2cores"])
def test_other_machines_give_the_same_answer(kept, machine):
    other = parts(load(RESULTS / machine))
    for rule in ("**Solve**", "**Form it** where it is the result", "**Never**"):
        (here,), (there,) = (
            [line.partition(":")[0] for line in text.splitlines() if rule in line]
            for text in (kept[PART], other[PART])
        )
        assert here == there
