"""The file of a sweep: what it says, and what is wrong with it in one line."""

import pytest

from strategies.errors import UnusableFileError
from strategies.sweeps import config

GOOD = """
out = "swept"
grid = "cpu"

[classes.epyc-2]
cpu = "EPYC 9..4"
threads = 2
partition = "cpu"
setup = ["module load python"]
"""


def read(tmp_path, text):
    (tmp_path / "sweep.toml").write_text(text)
    return config.read(tmp_path / "sweep.toml")


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    sweep = read(tmp_path, GOOD)
    assert sweep.out == tmp_path / "swept"
    assert sweep.workload is None
    other = read(tmp_path, GOOD.replace("grid", "workload"))
    assert (other.grid, other.workload) == ("", tmp_path / "cpu")


def test_a_class_says_what_slurm_is_asked_for(tmp_path):
    machines = read(tmp_path, GOOD).classes["epyc-2"]
    assert (machines.threads, machines.partition, machines.constraint) == (2, "cpu", "")
    assert machines.setup == ("module load python",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('grid = "cpu"', "", "needs one of grid and workload"),
        ('grid = "cpu"', 'grid = "cpu"\nworkload = "w.json"', "needs one of grid and workload"),
        ('grid = "cpu"', 'grid = "huge"', "no grid is named 'huge'; there is tiny"),
        ('grid = "cpu"', 'grid = "cpu"\nbudgets = 1', "budgets"),
        ("threads = 2", "threads = 0", "$.classes[...].threads"),
        ("threads = 2", 'threads = "two"', "$.classes[...].threads"),
        ("threads = 2", "treads = 2", "treads"),
        ('cpu = "EPYC 9..4"', "", "missing required field `cpu`"),
        ('cpu = "EPYC 9..4"', 'cpu = "EPYC ("', "'EPYC (' is no regular expression"),
        ("[classes.epyc-2]", '[classes."../epyc"]', "classes"),
        ("[classes.epyc-2]", "[classes.epyc-2", "line 5"),
        ('out = "swept"', "", "missing required field `out`"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(UnusableFileError) as error:
        read(tmp_path, GOOD.replace(old, new))
    assert str(error.value).startswith(str(tmp_path / "sweep.toml"))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnusableFileError, match="cannot be read"):
        config.read(tmp_path / "sweep.toml")
