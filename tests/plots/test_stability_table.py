import pytest

from plots.rows import table
from plots.stability_table import main, tables
from plots.style import NotDrawableError

PAGE = "# Title\n<!-- stability: begin -->\nold\n<!-- stability: end -->\nEnd\n"


@pytest.fixture
def update(write_runs, runs, fill, tmp_path):
    """Writes the tables into a page by the command."""
    write_runs(runs, tmp_path / "results")
    return lambda text: fill(main, text, "--results", tmp_path / "results")


def test_a_line_an_operation_with_what_is_above_the_limit_and_refused(rows):
    shown = tables(rows)
    assert '| operation | PyTorch | "auto" | JAX | lineax |' in shown
    assert "| `solve` | 2 of 2, ∞ | 0 of 2, 4.4 | 0 of 1, 2 | 1 refused |" in shown
    assert "| operation | `native` | `triangular_solve` | `explicit_inverse` | `qr_pinv` |" in shown
    assert "| `solve` | **∞** | – | **2e+02** | 4.4 |" in shown
    assert "| `pinv` | 2 | 2 | – | 2 |" in shown
    assert "reference-machine · Reference CPU · 2023-11-14" in shown


def test_the_command_replaces_what_is_between_the_markers_alone(update, rows):
    done, page = update(PAGE)
    assert done.exit_code == 0, done.output
    assert page == PAGE.replace("old", tables(rows))
    assert update(page)[1] == page


def test_a_page_without_markers_is_left_alone(update):
    done, page = update("# Title")
    assert (done.exit_code, page) == (2, "# Title")
    assert "lacks <!-- stability: begin -->" in " ".join(done.stderr.split())


def test_without_hard_cases_there_is_no_table(runs):
    with pytest.raises(NotDrawableError, match="no hard case"):
        tables(table(runs[:1]))
