import json
from pathlib import Path

import pytest

from strategies.selection import rows
from strategies.selection.files import UnusableFileError
from strategies.selection.pytest_benchmark_files import pytest_benchmark_records

PATH = Path(__file__).parent / "data" / "pytest-benchmark" / "0001_baseline.json"


def content():
    return json.loads(PATH.read_text())


def test_benchmarks_of_cases_become_records_and_others_are_left():
    records = pytest_benchmark_records(PATH, content())
    assert [r["strategy"] for r in records] == ["native", "triangular_solve"]
    assert {r["operation"] for r in records} == {"pinv"}
    assert all(r["backward_seconds"] > 0 for r in records)


def test_extra_info_fills_the_columns():
    table = rows.load(PATH.parent)
    assert list(table["error"]) == [1e-15, 2e-15]
    assert set(table["machine"]) == {"reference-machine"}
    assert table["started_at"].notna().all()


@pytest.mark.parametrize("key", ["datetime", "commit_info"])
def test_a_file_with_a_part_missing_is_refused(key):
    damaged = content()
    del damaged[key]
    with pytest.raises(UnusableFileError, match=f"0001_baseline.json.*{key}"):
        pytest_benchmark_records(PATH, damaged)


def test_a_newer_file_is_refused():
    with pytest.raises(UnusableFileError, match="pytest-benchmark 6"):
        pytest_benchmark_records(PATH, content() | {"version": "6.0.0"})


def test_the_test_and_its_parameters_are_named():
    native = pytest_benchmark_records(PATH, content())[0]
    assert native["benchmark"] in {benchmark["fullname"] for benchmark in content()["benchmarks"]}
    assert native["parameters"].startswith("native, ")
