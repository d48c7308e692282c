import math

import pandas as pd
import pytest
from by_hand import cell_of, run_of, stable_cell

from plots.rows import table
from strategies.measuring.measurement import Measurement, Status


def one(rows, **values):
    for column, value in values.items():
        rows = rows[rows[column].eq(value)]
    (index,) = rows.index
    return rows.loc[index]


def test_a_row_holds_the_case_the_measurement_and_the_verdict(rows):
    row = one(rows, operation="pinv", sizes="4096x16", strategy="qr_pinv", shows="time")
    assert (row["m"], row["n"], row["dtype"], row["kappa"]) == (4096, 16, "float64", 10)
    assert row["size"] == pytest.approx((4096 * 16 * 16) ** (1 / 3))
    assert row["speedup"] == pytest.approx(2.9)
    assert row["speedup_low"] < 2.9 < row["speedup_high"]
    assert row["backward_seconds"] == pytest.approx(row["seconds"] / 2)
    assert row["verdict"] == "tie"
    assert row["ratio"] == pytest.approx(3 / 2.9)


def test_every_row_says_what_it_was_measured_for(rows):
    shown = rows.groupby("shows")["sizes"].unique()
    assert len(shown["time"]) == 7
    assert "32x8 cond=1e5" in shown["condition"]
    assert "20x6 matrix=kahan" in shown["gallery"]
    assert list(shown["peers"]) == ["4096x16"]
    assert set(shown["stability"]) == {"4x4", "9x9 G=ones", "9x9 cond=1e9 B=image"}


def test_a_hard_case_has_the_worst_ratio_of_ours_and_of_other_libraries(rows):
    hard = rows[rows["sizes"].eq("9x9 cond=1e9 B=image")].set_index("strategy")["stability"]
    assert hard["native"] == 3e12
    assert hard["jax"] == 2.0
    assert math.isnan(hard["lineax"])


def test_strategies_of_a_hard_case_may_be_of_several_runs():
    ratios = {"qr_pinv": 1}, {"fused": 1}, {"fused": 2}
    runs = [run_of(stable_cell("inv 4x4", **each), kind="stability") for each in ratios]
    found = table(runs).set_index("strategy")["stability"]
    assert found.to_dict() == {"qr_pinv": 1, "fused": 2}


def test_the_condition_number_is_that_of_the_matrix(rows):
    assert one(rows, sizes="32x8 cond=1e5", strategy="native")["kappa"] == pytest.approx(1e5)
    assert one(rows, sizes="20x6 matrix=kahan", strategy="native")["kappa"] > 1
    deficient = one(rows, operation="pinv", sizes="64x16 rank=5", strategy="native")
    assert math.isnan(deficient["kappa"])


def test_single_matrices_come_before_deficient_ones_and_batches(rows):
    timed = rows[rows["shows"].eq("time") & rows["operation"].eq("pinv")]
    sizes = ["16x16", "64x8", "4096x16", "256x256", "64x16 rank=5", "1000 of 4x4"]
    assert list(timed["sizes"].unique()) == sizes


def test_what_did_not_run_has_no_numbers():
    cell = cell_of(Measurement("qr_pinv", Status.NOT_APPLICABLE), case="pinv 8x4")
    row = table([run_of(cell)]).iloc[0]
    assert row["status"] == "n/a"
    assert pd.isna(row[["seconds", "speedup", "error", "peak_bytes"]]).all()
    assert not row["chosen"]
    with pytest.raises(ValueError, match="nothing that a figure shows"):
        table([run_of(cell, kind="draw")])
