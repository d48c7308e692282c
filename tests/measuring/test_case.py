"""Cases: inputs that a seed determines, with the condition and rank that were asked for."""

import pytest
import torch

from strategies.accuracy import gallery
from strategies.measuring import Case
from strategies.measuring.case import _draw_inputs

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_cases_have_equal_inputs(dtype):
    case = Case("lstsq", (7, 4), batch=3, dtype=dtype, rhs=2)
    first = case.inputs()
    _draw_inputs.cache_clear()
    for a, b in zip(first, case.inputs(), strict=True):
        assert a is not b
        assert torch.equal(a, b)


def test_seeds_differ():
    first, second = (Case("inv", (4, 4), seed=seed).inputs()[0] for seed in (0, 1))
    assert not torch.equal(first, second)


def test_inputs_are_leaves_of_the_dtype_that_require_a_gradient():
    for a in Case("solve", (4, 4), dtype=torch.complex64).inputs():
        assert a.is_leaf
        assert a.requires_grad
        assert a.dtype == torch.complex64


@pytest.mark.parametrize("shape", [(6, 6), (9, 4), (4, 9)])
@pytest.mark.parametrize(("log10_cond", "expected"), [(None, 10.0), (0, 1.0), (6, 1e6)])
def test_condition_number(shape, log10_cond, expected):
    (a,) = Case("pinv", shape, batch=2, log10_cond=log10_cond).inputs()
    assert torch.linalg.cond(a).tolist() == pytest.approx([expected] * 2, rel=1e-6)


def test_determinant_of_a_large_matrix_is_about_one():
    (a,) = Case("det", (300, 300), dtype=torch.float32).inputs()
    assert torch.linalg.det(a).abs().item() == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_rank_is_exact(dtype, rank):
    (a,) = Case("pinv", (12, 8), batch=3, dtype=dtype, rank=rank).inputs()
    assert torch.equal(
        a,
        a.round() if not dtype.is_complex else torch.view_as_complex(torch.view_as_real(a).round()),
    )
    singular = torch.linalg.svdvals(a.to(torch.complex128))
    assert (singular[..., rank:] < 1e-12).all()
    if rank:
        assert (singular[..., rank - 1] * 100 > singular[..., 0]).all()


def test_cotangents_fit_the_outputs_and_repeat():
    case = Case("lu", (3, 3))
    outputs = (torch.zeros(3, 3), torch.zeros(2, dtype=torch.complex64))
    first, second = case.cotangents(outputs), case.cotangents(outputs)
    for out, a, b in zip(outputs, first, second, strict=True):
        assert (a.shape, a.dtype) == (out.shape, out.dtype)
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("case", "label"),
    [
        (Case("pinv", (4096, 32)), "pinv 4096x32 float64 cpu"),
        (Case("lu_factor", (4, 4), 100, torch.float32), "lu_factor 100x4x4 float32 cpu"),
        (Case("lstsq", (9, 4), rhs=3, log10_cond=8), "lstsq 9x4 k=3 cond=1e8 float64 cpu"),
        (Case("pinv", (9, 4), rank=2), "pinv 9x4 rank=2 float64 cpu"),
    ],
)
def test_label(case, label):
    assert case.label == label


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operation": "qr", "shape": (3, 3)}, "unknown operation 'qr'; known: lu_factor"),
        ({"operation": "inv", "shape": (3, 2)}, "inv needs a square matrix, got 3x2"),
        ({"operation": "pinv", "shape": (3, 2), "rank": 3}, "rank 3 is impossible"),
        ({"operation": "pinv", "shape": (3, 2), "rank": 1, "log10_cond": 2}, "give only one"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Case(**options)


def test_a_named_matrix_is_the_gallerys():
    case = Case("pinv", (6, 4), dtype=torch.float32, matrix="half_rank", seed=3)
    expected = gallery.make("half_rank", (6, 4), torch.float32, seed=3)
    assert torch.equal(case.inputs()[0], expected.matrix)
    assert case.known_rank == expected.rank == 2
    assert case.label == "pinv 6x4 matrix=half_rank float32 cpu"


def test_an_unknown_matrix_is_refused():
    with pytest.raises(ValueError, match="unknown matrix 'khan'; known: "):
        Case("inv", (3, 3), matrix="khan")


@pytest.mark.parametrize("more", [{"rank": 2}, {"log10_cond": 3.0}])
def test_a_named_matrix_has_its_own_rank_and_conditioning(more):
    with pytest.raises(ValueError, match="only one of rank, log10_cond and matrix"):
        Case("inv", (3, 3), matrix="kahan", **more)
