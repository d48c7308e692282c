"""The table of "auto" beside torch.linalg."""

from benchmarks.over_native import cases, main
from strategies.measuring.case import Case


def test_all_cases_can_be_read():
    assert len({Case.parse(text) for text in cases()}) == len(list(cases()))


def test_a_row_holds_both_ratios_with_their_intervals(capsys):
    main(["inv 3x3 float64"], budget=0.0)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "inv 3x3" in line]
    assert row.count(" to ") == 2
