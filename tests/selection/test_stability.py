"""What hard cases say of a strategy's stability."""

from by_hand import cell_of, run_of, stable_cell

from strategies.measuring import Case, Measurement
from strategies.selection.stability import evidence, summary, why_unstable


def test_the_worst_case_counts_over_all_dtypes():
    cells = [
        stable_cell("pinv 9x4 float32", qr_pinv=2.0),
        stable_cell("pinv 8x4", qr_pinv=7.0),
        stable_cell("pinv 7x4", qr_pinv=3.0),
    ]
    (found,) = summary(cells).values()
    assert (found["qr_pinv"].judged, found["qr_pinv"].worst) == (3, 7.0)
    assert Case.parse(found["qr_pinv"].case) == Case("pinv", (8, 4))


def test_who_shares_measurements_shares_the_evidence():
    cells = [stable_cell("det 3x3", native=1.0), stable_cell("slogdet 3x3", native=9.0)]
    assert summary(cells)["det"]["native"].worst == 9.0


def test_what_auto_did_is_no_evidence_of_a_strategy():
    assert "auto" not in summary([stable_cell("inv 3x3", auto=1.0, native=1.0)])["inv"]


def test_who_refuses_everything_is_not_stable():
    refused = Measurement("qr_pinv", status="n/a", note="no")
    known = summary([cell_of(refused, case="inv 3x3")])["inv"]
    assert known["qr_pinv"].refused == 1
    assert why_unstable("qr_pinv", known) == "refused all 1 hard cases"


def test_results_come_before_the_shipped_policy():
    run = run_of(stable_cell("inv 3x3", native=1e3), kind="stability")
    found = evidence([run])
    assert not found["inv"]["native"].is_stable
    assert found["pinv"]["native"].is_stable
