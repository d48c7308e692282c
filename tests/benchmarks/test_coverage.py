"""The calls and modes that `benchmarks.coverage` times."""

import inspect

import pytest
import torch

from benchmarks.coverage import results
from benchmarks.coverage.__main__ import Place, call_ours, call_torch, main, ratio
from benchmarks.coverage.calls import CALLS, SIZES, Size
from benchmarks.coverage.modes import MODES, applies
from benchmarks.coverage.results import Coverage, Ratio, Row
from strategies import linalg


def test_every_public_function_is_called():
    called = set()

    def functions(name, *arguments, **options):
        called.add(name)
        return call_ours(name, *arguments, **options)

    for call in CALLS.values():
        call.outputs(functions, *call.inputs(Size(4)))
    public = {name for name in linalg.__all__ if inspect.isfunction(getattr(linalg, name))}
    assert called == public


@pytest.mark.parametrize("size", [*SIZES, Size(5, (2, 3))], ids=str)
def test_a_size_is_read_as_it_is_written(size):
    assert Size.parse(str(size)) == size


@pytest.mark.parametrize("text", ["", "4", "4x5", "4xn"])
def test_other_texts_are_no_size(text):
    with pytest.raises(ValueError, match="32x32"):
        Size.parse(text)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "eig"])
@pytest.mark.parametrize("size", [Size(4), Size(70), Size(5, (3,))], ids=str)
def test_a_call_computes_the_same_by_both(name, size):
    call = CALLS[name]
    if not applies("eager", call, size):
        pytest.skip("takes no batches")
    inputs = call.inputs(size)
    found, expected = (call.outputs(each, *inputs) for each in (call_ours, call_torch))
    if name in ("inv_ex, a row of zeros", "solve_ex, a row of zeros", "cholesky_ex, indefinite"):
        assert found[0].isnan().any()  # PyTorch has arbitrary numbers there
        return
    for ours, theirs in zip(found, expected, strict=True):
        if theirs.numel():  # gelsy, PyTorch's driver, has no residuals
            rtol, atol = 1e-6, 1e-9
            if theirs.dtype == torch.float32:
                rtol, atol = 1e-3, 1e-5 * float(theirs.abs().max())
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("mode", [mode for mode in MODES if "compiled" not in mode])
def test_a_mode_has_a_ratio(mode):
    assert ratio(Place("solve k=2", mode, Size(4)), budget=0.0).median > 0


def test_what_pytorch_refuses_is_said_to_be_alone():
    place = Place("qr, R alone", "eager", Size(4))
    assert str(ratio(place, budget=0.0)) == "alone"


def test_the_worst_row_comes_first():
    rows = [
        Row("inv", "eager", "4x4", Ratio(2.0, 1.9, 2.1)),
        Row("det", "eager", "4x4", Ratio(0.5, 0.4, 0.6)),
        Row("lstsq", "jvp", "4x4", Ratio(None, None, None)),
    ]
    assert "| eager | 2 | 1.00 | 0.50 | 1 |" in list(results.summary(rows))
    lines = list(results.calls(rows))
    assert [line.split(" | ")[0] for line in lines[-3:]] == ["| det", "| inv", "| lstsq"]


def test_what_is_measured_is_kept(tmp_path):
    path = tmp_path / "coverage.json.gz"
    main(["inv"], mode=["no_grad"], size=["4x4"], budget=0.0, out=path)
    (row,) = Coverage.read(path).rows
    assert (row.call, row.mode, row.size) == ("inv", "no_grad", "4x4")
    assert row.ratio.low <= row.ratio.median <= row.ratio.high
    with pytest.raises(SystemExit):
        main(["none"], budget=0.0)
