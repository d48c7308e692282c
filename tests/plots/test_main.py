import pytest

from plots.__main__ import main


@pytest.fixture
def draw(write_runs, run, tmp_path):
    """Draws runs by the command: what it says, and the files that it makes."""

    def draw(runs, *names):
        write_runs(runs, tmp_path / "results")
        folders = ["--results", tmp_path / "results", "--out", tmp_path / "figures"]
        done = run(main, *names, *folders)
        return done, {path.name: path for path in tmp_path.glob("figures/*")}

    return draw


def test_what_can_be_drawn_is_and_what_cannot_is_told(draw, few):
    done, files = draw(few[:1])
    assert done.exit_code == 0, done.output
    assert "peers: not drawn, no other library was timed" in " ".join(done.output.split())
    drawn = ("speedup_heatmap", "time_against_error", "winners_map")
    assert set(files) == {f"{name}{suffix}" for name in drawn for suffix in (".png", ".svg")}
    assert all(path.stat().st_size > 10_000 for path in files.values())


def test_other_libraries_alone_make_their_figure(draw, few):
    done, files = draw(few[1:2])
    assert (done.exit_code, set(files)) == (0, {"peers.png", "peers.svg"}), done.output


def test_a_figure_can_be_named(draw, few):
    done, files = draw(few, "winners_map")
    assert (done.exit_code, set(files)) == (0, {"winners_map.png", "winners_map.svg"}), done.output
    done, _ = draw(few, "winners")
    assert done.stderr.startswith("error: no figure is named winners; there are ")


def test_no_results_is_one_line_and_no_traceback(draw):
    done, files = draw([])
    assert (done.exit_code, files) == (2, {})
    assert done.stderr.startswith("error: ")
