"""Cases: what makes one, and how it is written."""

import pytest
import torch

from strategies.accuracy import gallery
from strategies.measuring.case import DTYPES, Case


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (Case("pinv", (4096, 32)), "pinv 4096x32 float64 cpu"),
        (Case("lu_factor", (4, 4), 100, torch.float32), "lu_factor 100x4x4 float32 cpu"),
        (Case("lstsq", (9, 4), rhs=3, log10_cond=8), "lstsq 9x4 k=3 cond=1e8 float64 cpu"),
        (Case("pinv", (9, 4), rank=2, seed=3), "pinv 9x4 rank=2 float64 cpu seed=3"),
        (Case("inv", (9, 9), matrix="kahan"), "inv 9x9 matrix=kahan float64 cpu"),
        (Case("det", (3, 3), device="cuda:1"), "det 3x3 float64 cuda:1"),
        (Case("det", (3, 3), log10_cond=0.1 + 0.2), f"det 3x3 cond=1e{0.1 + 0.2} float64 cpu"),
    ],
)
def test_a_case_is_a_line_of_text(case, text):
    assert str(case) == text
    assert Case.parse(text) == case


def test_what_a_text_leaves_out_has_its_default():
    assert Case.parse("solve 4x4") == Case("solve", (4, 4))


def test_sizes_are_without_dtype_and_device():
    assert Case("inv", (4, 4)).sizes == "4x4"
    assert Case("lstsq", (8, 4), 1000, rhs=16).sizes == "1000 of 8x4 k=16"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is no case"),
        ("inv", "'inv' is no case"),
        ("inv 4", "'inv 4' is no case"),
        ("inv -1x-1", "is no case"),
        ("inv 1.5x2", "is no case"),
        ("inv 2x2x2x2", "is no case"),
        ("qr 3x3", "no measured operation is named 'qr'"),
        ("inv 0x0", "counted from 1"),
        ("lstsq 4x4 k=0", "counted from 1"),
        ("pinv 1000000000x1000000000", "no machine holds"),
        ("inv 3x2", "inv needs a square matrix, got 3x2"),
        ("inv 3x3 k=2", "inv takes no right-hand side"),
        ("inv 3x3 float16", "unknown dtype 'float16'; known: float32"),
        ("inv 3x3 cpuz", "unknown device 'cpuz'"),
        ("inv 3x3 meta", "unknown dtype 'meta'"),
        ("inv 3x3 rows=3", "rows=3 is not one of k=4"),
        ("inv 3x3 rank=x", "rank=x is not one of"),
        ("inv 3x3 cond=3", "cond=3 is not one of"),
        ("inv 3x3 cond=1enan", "cond=1enan is not one of"),
        ("inv 3x3 cond=1e-2", "condition number"),
        ("inv 3x3 seed=9999999999999999999999", "a seed is between"),
        ("pinv 3x2 rank=3", "rank 3 is impossible"),
        ("pinv 3x2 rank=1 cond=1e2", "give only one of rank, log10_cond and matrix"),
        ("pinv 3x2 rank=1 matrix=kahan", "give only one of rank, log10_cond and matrix"),
        ("inv 3x3 matrix=khan", "unknown matrix 'khan'; known: "),
    ],
)
def test_what_is_no_case_is_refused_with_the_reason(text, problem):
    with pytest.raises(ValueError, match=problem) as refused:
        Case.parse(text)
    assert "\n" not in str(refused.value)


def test_equal_cases_have_equal_inputs_that_are_leaves():
    for dtype in DTYPES.values():
        first, second = (Case("lstsq", (7, 4), 3, dtype, rhs=2, seed=1) for _ in range(2))
        Case("inv", (2, 2)).inputs()  # the latest inputs are kept
        for a, b in zip(first.inputs(), second.inputs(), strict=True):
            assert torch.equal(a, b)
            assert a.dtype == dtype
            assert a.is_leaf
            assert a.requires_grad
        other = Case("lstsq", (7, 4), 3, dtype, rhs=2, seed=2)
        assert not torch.equal(first.inputs()[0], other.inputs()[0])


def test_cotangents_fit_the_outputs_and_repeat():
    case = Case("lu", (3, 3))
    outputs = (torch.zeros(3, 3), torch.zeros(2, dtype=torch.complex64))
    first, second = case.cotangents(outputs), case.cotangents(outputs)
    for out, a, b in zip(outputs, first, second, strict=True):
        assert (a.shape, a.dtype) == (out.shape, out.dtype)
        assert torch.equal(a, b)


@pytest.mark.parametrize("scale", [1030, -1070])
def test_a_scale_may_be_no_number_of_its_own(scale):
    outputs = (torch.zeros(3, 3, dtype=torch.float64),)
    (found,) = Case("inv", (3, 3), scale=scale).cotangents(outputs)
    (due,) = Case("inv", (3, 3)).cotangents(outputs)
    assert torch.equal(found, torch.ldexp(due, torch.tensor(scale)))


def test_a_named_matrix_is_the_gallerys():
    case = Case("pinv", (6, 4), dtype=torch.float32, matrix="half_rank", seed=3)
    expected = gallery.make("half_rank", (6, 4), torch.float32, seed=3)
    assert torch.equal(case.inputs()[0], expected.matrix)
    assert case.known_rank == expected.rank == 2
