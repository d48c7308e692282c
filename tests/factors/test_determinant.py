"""Determinants from LU factors, compiled and in operations of torch, and what they note."""

import torch
from comparison import drawn

from strategies.accuracy import gallery
from strategies.factors.determinant import FACTORS_ARE_USELESS, NOT_FINITE, determinant
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.kernels.cpu import calls

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128


def determinant_of(A):
    LU, pivots, _ = torch.linalg.lu_factor_ex(A)
    return determinant(A, LU, pivots)


def notes_of(rows):
    return determinant_of(torch.tensor(rows, dtype=torch.float64)).notes.tolist()


def test_loops_and_library_calls_find_the_same(monkeypatch):
    for dtype in DTYPES:
        given = [torch.randn(*batch, 5, 5, dtype=dtype) for batch in ((), (7,), (2, 3), (0,))]
        names = "half_rank", "graded_rows", "wilkinson_growth", "one_tiny_singular_value", "zero"
        given += [gallery.make(name, (12, 12), dtype, (3,)).matrix for name in names]
        given += [given[1] * torch.finfo(dtype).tiny, given[1] * (torch.finfo(dtype).max / 16)]
        given.append(torch.full((2, 2), torch.nan, dtype=dtype))
        for A in given:
            with monkeypatch.context() as patch:
                patch.setattr(calls.Call, "supports", lambda *_: False)
                expected = determinant_of(A)
            found = determinant_of(A)
            assert torch.equal(found.notes[..., 1:], expected.notes[..., 1:])
            assert torch.equal(found.inverse_order, expected.inverse_order)
            # Of hard matrices it is not used. The others may have different exponents.
            usable = found.notes[..., 2] == 0
            shift = found.notes[..., 0] - expected.notes[..., 0]
            mantissa = times_power_of_two(found.mantissa, shift)[usable]
            within = dict.fromkeys(("rtol", "atol"), 1000 * torch.finfo(dtype).eps)
            torch.testing.assert_close(mantissa, expected.mantissa[usable], **within)


def test_well_conditioned_matrices_have_nothing_noted_whatever_their_grading():
    for dtype in DTYPES:
        A = drawn(500, 6, 6, dtype=dtype)
        graded = A * 2.0 ** -torch.arange(0, 24, 4)
        assert not determinant_of(A).notes.any()
        assert not determinant_of(graded).notes[..., 1:].any()


def test_pivots_are_negligible_beside_their_row_and_column():
    assert notes_of([[1.0, 0.0], [0.0, 1e-9]]) == [0, 0, 0]
    assert notes_of([[1.0, 1.0], [1.0, 1.0 + 1e-9]]) == [0, 1, 0]


def test_factors_are_useless_with_a_zero_pivot_or_after_growth():
    assert notes_of([[2.0, 4.0], [4.0, 8.0]])[2] == FACTORS_ARE_USELESS
    doubling = gallery.make("wilkinson_growth", (8, 8), torch.float64).matrix
    assert determinant_of(doubling).notes[2] == FACTORS_ARE_USELESS


def test_pivots_that_are_roundoff_are_counted_and_no_hazard():
    E = drawn(3, 3)
    for size in (1e-11, 1e-15):
        assert determinant_of(torch.ones_like(E) + size * E).notes.tolist() == [0, 2, 0]


def test_one_infinite_or_undefined_entry_anywhere_is_noted():
    for value in (torch.nan, torch.inf):
        for position in range(9):
            A = torch.eye(3).repeat(2, 1, 1)
            A[1].view(-1)[position] = value
            assert determinant_of(A).notes[:, 2].tolist() == [0, NOT_FINITE]
