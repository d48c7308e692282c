import pandas as pd
import pytest

from strategies.selection import markdown
from strategies.selection.files import UnusableFileError
from strategies.selection.verdicts import judge


@pytest.fixture
def rows(rows_of, at_speed):
    cells = [
        rows_of(
            at_speed("native", 1),
            at_speed("qr_pinv", 4),
            at_speed("explicit_inverse", 9, error=1e-3),
        ),
        rows_of(at_speed("native", 1, 1.1), at_speed("qr_pinv", 1, 1.1), m=16, batch=7),
        rows_of(
            {"strategy": "native", "status": "n/a"},
            {"strategy": "qr_pinv", "status": "timeout"},
            m=9000,
        ),
    ]
    return pd.concat(cells, ignore_index=True)


@pytest.fixture
def beside(rows_of, at_speed):
    # Our best at forward and backward together has no time of the backward.
    both = {"strategy": "svd_truncated_pinv", "forward_backward_seconds": 1.0}
    measured = [at_speed("native", 1), both, at_speed("qr_pinv", 4), at_speed("jax", 150)]
    return rows_of(*(row | {"is_peer": True} for row in measured))


def line_of(text, case):
    (line,) = [line for line in text.splitlines() if f"| {case} |" in line]
    return [entry.strip() for entry in line.split("|")[1:-1]]


def test_a_line_says_what_each_strategy_is_worth(rows, order):
    text = markdown.answer(judge(rows, order), rows, order)
    assert line_of(text, "matrix")[2:] == ["native", "explicit_inverse", "qr_pinv"]
    assert line_of(text, "64x8") == ["`pinv`", "64x8", "1 ms", "(9×)", "**4×**"]
    assert line_of(text, "7 of 16x8")[2:] == ["**1 ms**", "–", "≈ 1×"]
    assert line_of(text, "9000x8")[2:] == ["–", "–", "timeout"]


def test_large_single_matrices_come_first_and_batches_last(rows, order):
    lines = markdown.answer(judge(rows, order), rows, order).splitlines()[4:]
    assert [line.split("|")[2].strip() for line in lines] == ["9000x8", "64x8", "7 of 16x8"]


def test_the_heading_says_where_and_when(rows, order):
    heading = markdown.answer(judge(rows, order), rows, order).splitlines()[0]
    assert heading.startswith("**float64, cpu** · here")
    assert heading.endswith("2023-11-14")


def test_other_libraries_follow_in_a_table_of_their_own(rows, beside, order):
    every = pd.concat([rows, beside], ignore_index=True)
    text = markdown.answer(judge(every, order), every, order)
    ours, theirs = text.split("Beside other libraries: ")
    assert "jax" not in ours
    assert line_of(theirs, "64x8")[2:] == ["1 ms", "4× `qr_pinv`", "150×"]


def test_only_what_is_between_the_markers_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{markdown.BEGIN}\nold\n{markdown.END}\nafter\n")
    markdown.put_between_markers(page, "new")
    assert page.read_text() == f"before\n{markdown.BEGIN}\nnew\n{markdown.END}\nafter\n"


@pytest.mark.parametrize("text", ["", markdown.BEGIN, f"{markdown.END}\n{markdown.BEGIN}"])
def test_a_page_without_markers_is_left_alone(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(UnusableFileError, match=r"page\.md: lacks a pair of lines"):
        markdown.put_between_markers(page, "new")
    assert page.read_text() == text
