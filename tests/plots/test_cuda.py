"""A table of what was measured on a CUDA device, from a file that is kept."""

from by_hand import cell

from plots import cuda


def test_the_fastest_other_strategy_is_compared_with_native():
    assert cuda.ratio(cell("inv 4x4 cuda:0", native=6.0, fused=2.0, qr_pinv=3.0)) == 3.0
    assert cuda.ratio(cell("inv 4x4 cuda:0", fused=2.0)) is None
    assert cuda.ratio(cell("inv 4x4 cuda:0", native=2.0)) is None


def test_the_slowest_operation_comes_first():
    cases = {"inv 3x3 float64 cuda:0": 1.0, "inv 4x4 float64 cuda:0": 4.0, "det 3x3 cuda:0": 0.5}
    det, inv = cuda.lines([cell(case, native=each, fused=1.0) for case, each in cases.items()])
    assert det[:4] == ("`det`", "1", "0.50", "0.50")
    assert inv == ("`inv`", "2", "2.00", "1.00", "3x3 float64", "4.0", "4x4 float64")


def test_the_kept_file_fills_the_page(page):
    filled = page("cuda")
    cuda.main(filled)
    assert "| `lu_factor` | 8 |" in filled.read_text()
    assert "NVIDIA H100" in filled.read_text()
