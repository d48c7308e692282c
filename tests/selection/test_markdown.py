import pytest
from by_hand import cell_of, run_of, took

from strategies.errors import UnusableFileError
from strategies.measuring.measurement import Objective, Status
from strategies.selection import markdown
from strategies.selection.verdicts import judge

ALL = "<!-- recommendation: all -->"
END = "<!-- recommendation: end -->"


@pytest.fixture
def runs():
    refused = took("native", status=Status.NOT_APPLICABLE)
    bad = took("explicit_inverse", 0.004 / 9, error=1e6)
    beside = (took(name, time, error=None) for name, time in (("native", 1), ("qr_pinv", 0.25)))
    return [
        run_of(
            cell_of(took("native", 0.004), took("qr_pinv", 0.001), bad),
            cell_of(took("native", 1, 1.05), took("qr_pinv", 1, 1.05), case="pinv 7x16x8"),
            cell_of(took("native", 0.0012, 2.0), took("qr_pinv", 0.001, 2.0), case="pinv 16x8"),
            cell_of(refused, took("qr_pinv", status=Status.FAILED), case="pinv 9000x8"),
        ),
        run_of(cell_of(*beside, took("jax", 1 / 150, error=None)), kind="peers"),
    ]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(f"before\n{ALL}\nold\n{END}\nafter\n")
    return path


@pytest.fixture
def text(runs, page):
    markdown.update(page, judge(runs), runs, Objective.FORWARD_BACKWARD)
    before, rest = page.read_text().split(f"{ALL}\n")
    text, after = rest.split(f"\n{END}")
    assert (before, after) == ("before\n", "\nafter\n")
    return text


def line_of(text, case):
    (line,) = [line for line in text.splitlines() if f"| {case} |" in line]
    return [entry.strip() for entry in line.split("|")[1:-1]]


def test_a_line_says_what_each_strategy_is_worth(text):
    *ours, theirs = text.split("**float64, cpu**")
    assert line_of("".join(ours), "matrix")[2:] == ["native", "explicit_inverse", "qr_pinv"]
    assert line_of("".join(ours), "64x8") == ["`pinv`", "64x8", "4 ms", "(9×)", "**4×**"]
    assert line_of("".join(ours), "7 of 16x8")[2:] == ["**1 s**", "–", "≈ 1×"]
    assert line_of("".join(ours), "16x8")[2:] == ["? 1.2 ms", "–", "≈ 1.2×"]
    assert line_of("".join(ours), "9000x8")[2:] == ["–", "–", "failed"]
    assert line_of(theirs, "64x8")[2:] == ["1 s / –", "4× / –", "150× / –"]


def test_large_single_matrices_come_first_and_batches_last(text):
    lines = text.splitlines()[4:8]
    found = [line.split("|")[2].strip() for line in lines]
    assert found == ["9000x8", "64x8", "16x8", "7 of 16x8"]


def test_the_heading_says_where_and_when(text):
    assert text.splitlines()[0] == "**float64, cpu** · here · a processor · 2026-11-20"


def test_the_marker_may_name_the_cases(runs, page):
    page.write_text(page.read_text().replace("all", "pinv 16x8, pinv 7x16x8"))
    markdown.update(page, judge(runs), runs, Objective.FORWARD_BACKWARD)
    found = [line.split("|")[2].strip() for line in page.read_text().splitlines() if "`" in line]
    assert found == ["16x8", "7 of 16x8"]


@pytest.mark.parametrize("text", ["", ALL, f"{END}\n{ALL}"])
def test_a_page_without_markers_is_left_alone(text, runs, page):
    page.write_text(text)
    with pytest.raises(UnusableFileError, match=r"page\.md: lacks lines"):
        markdown.update(page, judge(runs), runs, Objective.FORWARD_BACKWARD)
    assert page.read_text() == text
