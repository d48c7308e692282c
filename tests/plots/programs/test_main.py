"""From results to figures and a page."""

import msgspec
import pytest
from by_hand import timing

from benchmarks.training import memory_plan
from benchmarks.training.choices import Choice
from benchmarks.training.memory_plan import Plan
from benchmarks.training.results import Result, Way
from plots.programs import figures, page
from plots.programs.__main__ import main
from plots.style import NotDrawableError
from strategies.measuring.case import Case
from strategies.measuring.machine import Machine

PARTS = ("summary", "table", "choices", "plan", "programs")
PAGE = "".join(f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in PARTS)


def measured(name, auto, last, choices, jax=None):
    return Result(
        program=name,
        size="small",
        machine=Machine("reference-machine", started_at="2023-11-14T22:13:20+00:00"),
        torch=Way("torch", timing(4e-3, 1.1), 4000, (1.0, 0.5)),
        auto=Way("auto", timing(auto, 1.1), 1000, (1.0, last)),
        tuned=Way("blocked_lu", timing(2e-3, 1.1), 2000),
        jax=jax,
        forward=0.25,
        backward=0.5,
        choices=tuple(Choice(case, 1.0, "fused", "native", *rest) for case, *rest in choices),
        moved=(1.0, 0.25),
    )


@pytest.fixture
def found():
    choices = [("inv 9x9 float32 cpu", 1.0, 4.0), ("inv 8x8 float32 cpu", 2.0, 0.5)]
    return [
        measured("elastic", 5e-3, None, [("det 9x3x3 float64 cpu", 1.3, 2.0)]),
        measured("roma", 1e-3, 0.5, choices, jax=timing(5e-4, 1.1)),
    ]


PLAN = Plan(Case("inv", (9, 9)), 648, "fused", 3.0, 2.0, (5, 7))


def test_the_summary_counts_gains_and_names_losses(found):
    said = page.summary(found)
    assert "1 of 2 programs take a step at least 1.3 times as fast, and 1 at least 2 times" in said
    assert "2 need less than half of the memory. Slower than 0.97×: elastic (0.8×)." in said
    assert "None is below 0.97×." in page.summary(found[1:])
    assert "reference-machine · 2023-11-14" in said


def test_a_line_a_program_the_fastest_first(found):
    head, _, first, second = page.table(found).splitlines()
    assert head.startswith("| program | step by PyTorch |")
    assert first.startswith("| [roma](#gaussian-process-decoder-of-a-matcher) | 4 ms | 4.00× (")
    assert "2× `blocked_lu` | 8× | 4× | 25% / 50% | 4 kB, 1 kB | 0e+00, 5e-01 |" in first
    assert "2× `blocked_lu` | – | 4× |" in second
    assert second.endswith("| see there |")


def test_regrets_are_counted_by_half(found):
    lines = page.regret_table(found).splitlines()
    assert lines[2] == "| seen | 1 | 0% | 0 | 1 | 0 | 1.30 | 1.30 in `det 9x3x3 float64 cpu` |"
    assert lines[3] == "| untouched | 2 | 50% | 1 | 0 | 1 | 2.00 | 2.00 in `inv 8x8 float32 cpu` |"


def test_a_paragraph_is_the_programs_own(found):
    said = page.paragraphs(found)
    assert "### Elasticity, from a flattened body\n\nA block of tetrahedra" in said
    assert 'After 2 steps they are 0.5 and –, by PyTorch and by `"auto"`.' in said
    assert "of the untouched half, after Parskatt/RoMa" in said
    assert "| `inv 9x9 float32` | 1 | `fused` | `native` | 1.00 | 4.00 |" in said


def test_a_plan_is_in_bytes():
    line = page.plan_table([PLAN]).splitlines()[2]
    assert line == "| `inv 9x9 float64` | 648 | 3.00 × = 1,944 | 2.00 × = 1,296 | `fused` | 5, 7 |"


BARS = {"roma (4 ms)", "roma (4 kB)", '"auto"', "PyTorch", "4×"}
COURSES = {"Elasticity, from a flattened body", "PyTorch", "step"}


@pytest.mark.parametrize(("draw", "labels"), [(figures.bars, BARS), (figures.courses, COURSES)])
def test_a_figure_says_what_it_shows(found, draw, labels, texts):
    shown = texts(draw(found))
    assert labels <= set(shown)
    assert any("reference-machine · 2023-11-14" in text for text in shown)


def test_what_is_not_there_is_not_drawn(found):
    with pytest.raises(NotDrawableError, match="no program"):
        figures.courses(found[1:])


@pytest.fixture
def update(fill, found, tmp_path, monkeypatch):
    """Writes results, and runs the command on them and a page."""
    monkeypatch.setattr(memory_plan, "plans", lambda: iter([PLAN]))
    for each in found:
        each.save(tmp_path / "results" / f"{each.program}.json", parents=True)
    folders = "--results", tmp_path / "results", "--figures", tmp_path / "figures"
    return lambda text, *options: fill(main, text, *folders, *options)


def test_the_command_fills_a_page_and_draws(update, found, tmp_path):
    done, text = update(PAGE)
    assert done.exit_code == 0, done.output
    assert "old" not in text
    assert page.table(found) in text
    assert {path.stem for path in tmp_path.glob("figures/*.svg")} == {"programs", "convergence"}
    assert update(text)[1] == text


def test_what_was_measured_in_full_size_has_a_table_of_its_own(update, found, tmp_path):
    full = msgspec.structs.replace(found[0], size="full")
    full.save(tmp_path / "full" / "elastic.json", parents=True)
    places = "<!-- full: begin -->\n<!-- full: end -->\n"
    done, text = update(f"{PAGE}{places}", "--full", tmp_path / "full")
    assert done.exit_code == 0, done.output
    assert page.table([full]) in text
