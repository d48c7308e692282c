"""Forming the inverse against solving: by results made by hand, and what the kept results say."""

from pathlib import Path

import pytest
from by_hand import cell_of, timing, took

from plots import marked
from plots.inverse_or_solve import PART, TABLES, main, parts
from strategies.measuring.machine import Machine
from strategies.measuring.store import Run, load

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
README = f"before\n<!-- {PART}: begin -->\n(answer)\n<!-- {PART}: end -->\nafter\n"
PAGE = f"{README}<!-- {TABLES}: begin -->\n(tables)\n<!-- {TABLES}: end -->\n"
SIZES = "32x32", "256x256", "160x8x8"


def cell(case, both, backward, **others):
    """The inverse takes so many times as long as solves; other strategies so many seconds."""
    seconds = {"triangular_solve": 1.0, "explicit_inverse": both, **others}
    of_backward = {name: backward if name == "explicit_inverse" else 1.0 for name in seconds}
    measured = (took(*each, backward=timing(of_backward[each[0]])) for each in seconds.items())
    return cell_of(*measured, case=case)


def of_sizes(operation, both, backward):
    return [cell(f"{operation} {size}", both, backward) for size in SIZES]


SVD = {"32x32": 0.1, "256x256": 9.0, "160x8x8": 0.1}
UNSTABLE = ["- **Never** form (AᴴA)⁻¹Aᴴ by the normal equations, in `pinv`"]
UNSTABLE += ["| `pinv` | (0.5 / 0.5) | (0.5 / 0.5) | (0.5 / 0.5) | unstable, "]
SAID = {
    "solve where the inverse takes longer": (
        of_sizes("det", 2.0, 3.0),
        [
            "- **Solve** in `det`: forward and backward by the inverse take 2 times as long for single "
            "matrices with n ≥ 128, and 2 times for smaller n.",
            "| `det` | 2 / 3 | 2 / 3 | 2 / 3 | stable |",
        ],
    ),
    "form it where it takes less": (
        of_sizes("inv", 0.5, 0.25),
        [
            "- **Form it** in `inv`: that takes 0.5 of the time of solves.",
            "| `inv` | **0.5** / **0.25** |",
        ],
    ),
    "form it where the backward alone pays": (
        of_sizes("solve", 2.0, 0.25),
        [
            "one forward serves many backwards, in `solve`: a backward takes 0.25 of the time",
            "| `solve` | 2 / **0.25** |",
        ],
    ),
    "never what is unstable": (of_sizes("pinv", 0.5, 0.5), UNSTABLE),
    "an SVD up to the size where it is the fastest": (
        [cell(f"pinv {n}", 0.5, 0.5, svd_truncated_pinv=SVD[n]) for n in SIZES],
        ["solves and QR only for small single matrices, in most cases with n ≤ 32, in `pinv`"],
    ),
    "how often compiled kernels are the default": (
        [cell("inv 8x8", 1.0, 1.0, fused=0.1), cell("inv 9x9", 1.0, 1.0, fused=9.0)],
        ["a compiled kernel (`fused` and `batch_last`) in 1 of the 2 cases that are not too noisy"],
    ),
    "right-hand sides in lines of their own": (
        [cell(f"solve {size} k={k}", k, 0.5) for size in SIZES for k in (1, 4)],
        ["| `solve` | 1 | 1 / **0.5** |", "| `solve` | 4 | 4 / **0.5** |"],
    ),
}


@pytest.mark.parametrize("rule", SAID)
def test_what_the_results_say_is_said(rule):
    cells, said = SAID[rule]
    machine = Machine("here", started_at="2026-11-20T10:00:00Z")
    text = "\n".join(parts([Run("grid", machine, {}, tuple(cells))]).values())
    assert [each for each in said if each not in text] == []
    if rule.startswith(("solve", "never")):
        assert "Form it" not in text


def test_a_busy_machine_answers_nothing():
    machine = Machine("here", started_at="2026-11-20T10:00:00Z", noise=9.0)
    found = parts([Run("grid", machine, {}, tuple(of_sizes("det", 2.0, 3.0)))])
    assert (
        found[PART]
        == "The machine was busy in all cases, whose times answer nothing: measure again."
    )


def test_the_command_replaces_what_is_between_the_markers(run, tmp_path):
    readme, page = tmp_path / "one.md", tmp_path / "other.md"
    readme.write_text(README)
    page.write_text(PAGE)
    results = RESULTS / "epyc-1thread"
    done = run(main, readme, page, "--results", results)
    assert done.exit_code == 0, done.output
    found = parts(load(results))
    filled = README.replace("(answer)", found[PART])
    assert readme.read_text() == filled
    assert page.read_text() == PAGE.replace(README, filled).replace("(tables)", found[TABLES])


def test_without_a_page_the_command_prints_the_answer(run):
    results = RESULTS / "epyc-1thread"
    done = run(main, "--results", results)
    assert done.output.strip() == parts(load(results))[PART]


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
    for rule in ("**Solve**", "**Form it** in `inv`", "**Never**"):
        (here,), (there,) = (
            [line.partition(":")[0] for line in text.splitlines() if rule in line]
            for text in (kept[PART], other[PART])
        )
        assert here == there
