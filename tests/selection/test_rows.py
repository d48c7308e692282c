import shutil

import pandas as pd
import pytest

from strategies.selection import rows
from strategies.selection.files import UnusableFileError


def test_a_row_for_every_case_and_strategy(asv_folder):
    table = rows.load(asv_folder)
    assert list(table.columns) == rows.COLUMNS
    assert not table.duplicated([*rows.CELL, "strategy"]).any()
    assert set(table["status"]) == {"ok", "n/a"}
    assert set(table["source"]) == {"reference-machine/a7107f47-existing-py3.11.json"}


def test_a_machines_folder_reads_like_its_parent(asv_folder):
    alone = rows.load(asv_folder / "reference-machine")
    pd.testing.assert_frame_equal(
        alone.drop(columns="source"), rows.load(asv_folder).drop(columns="source")
    )


def test_the_test_ratio_is_the_error_in_units_of_condition_and_roundoff(rows_of):
    table = rows_of({"strategy": "native", "error": 5.0 * 2.0**-53}, log10_cond=2)
    assert table["test_ratio"].item() == pytest.approx(0.05)


def test_no_test_ratio_where_the_condition_is_unknown(rows_of):
    assert rows_of({"strategy": "native"}, rank=3)["test_ratio"].isna().all()


def test_one_corrupt_file_stops_everything(asv_folder):
    (asv_folder / "reference-machine" / "0-x.json").write_text("{")
    with pytest.raises(UnusableFileError, match=r"0-x\.json"):
        rows.load(asv_folder)


def test_a_foreign_file_is_named(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "something"}')
    with pytest.raises(UnusableFileError, match=r"package\.json: is not a result file"):
        rows.load(tmp_path)


def test_a_missing_folder_and_an_empty_one_are_told_apart(tmp_path):
    with pytest.raises(UnusableFileError, match="is not a folder"):
        rows.load(tmp_path / "nowhere")
    with pytest.raises(UnusableFileError, match="holds no results"):
        rows.load(tmp_path)


def test_the_newest_run_of_a_case_replaces_the_older_one(rows_of):
    old = rows_of({"strategy": "native"}, source="a", started_at=1000)
    new = rows_of({"strategy": "native"}, {"strategy": "qr_pinv"}, source="b", started_at=2000)
    found = rows.latest(pd.concat([new, old], ignore_index=True))
    assert set(found["source"]) == {"b"}
    assert len(found) == 2


def test_a_case_that_only_an_older_run_has_is_kept(rows_of):
    old = rows_of({"strategy": "native"}, source="a", started_at=1000, m=128)
    new = rows_of({"strategy": "native"}, source="b", started_at=2000)
    assert len(rows.latest(pd.concat([old, new], ignore_index=True))) == 2


def test_strategies_of_one_case_come_from_one_run(rows_of):
    old = rows_of({"strategy": "native"}, {"strategy": "qr_pinv"}, source="a", started_at=1000)
    new = rows_of({"strategy": "native"}, source="b", started_at=2000)
    found = rows.latest(pd.concat([old, new], ignore_index=True))
    assert list(found["strategy"]) == ["native"]


def test_a_plug_in_is_a_strategy_like_any_other(asv_folder):
    path = next(asv_folder.glob("*/*-*.json"))
    path.write_text(path.read_text().replace("'qr_pinv'", "'somebody_elses'"))
    assert "somebody_elses" in set(rows.load(asv_folder)["strategy"])


def test_results_without_a_list_of_benchmarks_can_be_read(asv_folder):
    (asv_folder / "benchmarks.json").unlink()
    assert len(rows.load(asv_folder)) > 0


def test_results_without_their_machine_file_are_named(asv_folder):
    shutil.move(asv_folder / "reference-machine" / "machine.json", asv_folder / "gone")
    with pytest.raises(UnusableFileError, match=r"no machine\.json"):
        rows.load(asv_folder)
