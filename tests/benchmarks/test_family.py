"""The table of Cholesky, QR and their kin beside PyTorch."""

import pytest

from benchmarks.family import ROWS, main


@pytest.mark.parametrize("operation", sorted({row.split()[0] for row in ROWS}))
def test_a_row_holds_both_ratios_with_their_intervals(operation, capsys):
    columns = " k=2" if operation.endswith("solve") or operation == "solve_triangular" else ""
    main([f"{operation} 3x3{columns}"], budget=0.0)
    assert capsys.readouterr().out.count(" to ") == 2


def test_an_unknown_operation_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["matrix_exp 3x3"], budget=0.0)
    assert "there is cholesky" in capsys.readouterr().err
