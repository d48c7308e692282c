import math

import numpy as np
import pytest
import torch

from strategies.accuracy import gallery
from strategies.exact.rank import rank_profile
from strategies.formulas.amplification import condition_number, unit_roundoff

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (12, 12), (20, 9), (9, 20)]


@pytest.mark.parametrize("name", gallery.names())
def test_is_what_it_says(name):
    for shape in SHAPES:
        for dtype in DTYPES:
            specimen = gallery.make(name, shape, dtype, (2,), seed=3)
            assert specimen.matrix.dtype == dtype
            assert specimen.matrix.shape == (2, *shape)
            assert specimen.matrix.isfinite().all()
            for matrix in specimen.matrix.numpy():
                assert len(rank_profile(matrix)[0]) == specimen.rank
            assert specimen.rank == min(shape) or name not in gallery.WELL_POSED
            if specimen.rank > 0:
                measured = float(condition_number(specimen.matrix, specimen.rank).max())
                assert 0.5 < measured / specimen.condition < 2


@pytest.mark.parametrize("name", gallery.names())
def test_seed_decides_every_bit(name):
    first, again = (gallery.make(name, (6, 4), torch.complex64, (2,), seed=1) for _ in range(2))
    assert torch.equal(first.matrix, again.matrix)


def test_other_seed_and_other_place_in_the_batch_give_another_matrix():
    of_shape = "random_condition_2", (4, 4), torch.float64, (2,)
    first, other = (gallery.make(*of_shape, seed=seed).matrix for seed in (0, 1))
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])


def test_rank_is_exact():
    for rank in (0, 1, 7, 20):
        for shape in ((30, 30), (64, 20), (20, 64)):
            for dtype in DTYPES:
                specimen = gallery.random_with_rank(shape, dtype, rank, (2,), seed=5)
                for matrix in specimen.matrix.numpy():
                    assert len(rank_profile(matrix)[0]) == rank
                    assert len(rank_profile(matrix[:, :rank])[0]) == rank
                assert specimen.condition < 1e4


def test_rank_is_the_same_matrix_in_every_precision():
    narrow = gallery.random_with_rank((40, 40), torch.float32, 25, seed=2).matrix
    wide = gallery.random_with_rank((40, 40), torch.float64, 25, seed=2).matrix
    assert torch.equal(narrow.double(), wide)


@pytest.mark.parametrize("log10_cond", [0, 1, 5, 10, 14])
def test_condition_is_as_prescribed(log10_cond):
    for shape in ((24, 24), (40, 12), (12, 40)):
        for dtype in (torch.float64, torch.complex128):
            specimen = gallery.random_with_condition(shape, dtype, log10_cond)
            assert specimen.condition == 10.0**log10_cond
            measured = float(condition_number(specimen.matrix))
            assert measured == pytest.approx(10.0**log10_cond, rel=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_specimens_are_near_the_ends_of_the_range(dtype):
    tiny, u = torch.finfo(dtype).tiny, unit_roundoff(dtype)
    small = gallery.make("near_underflow", (8, 8), dtype).matrix
    large = gallery.make("near_overflow", (8, 8), dtype).matrix
    assert small.abs().max() < tiny / u
    assert large.abs().max() > 0.5 * u / tiny


def test_partial_pivoting_grows_on_wilkinsons_matrix():
    matrix = gallery.make("wilkinson_growth", (20, 20), torch.float64).matrix
    assert torch.linalg.lu_factor(matrix).LU.abs().max() == 2.0**19


def test_kahan_condition_is_right_beyond_double_precision():
    # At n = 3 the inverse is short enough to write down: with c = cos 1.2, s = sin 1.2.
    c, s = math.cos(1.2), math.sin(1.2)
    kahan = np.array([[1, -c, -c], [0, s, -s * c], [0, 0, s * s]])
    specimen = gallery.make("kahan", (3, 3), torch.float64)
    assert specimen.condition == pytest.approx(np.linalg.cond(kahan))
    assert gallery.make("kahan", (128, 128), torch.float64).condition > 1e18


@pytest.mark.parametrize(
    ("name", "size", "dtype", "message"),
    [
        ("wilkinson_growth", 200, torch.float32, r"exceeds the range of torch\.float32"),
        ("hilbert", 2, torch.float64, r"'hilbert'.*kahan"),
        ("kahan", 2, torch.float16, r"torch\.float16"),
    ],
)
def test_what_cannot_be_made_is_refused(name, size, dtype, message):
    with pytest.raises(ValueError, match=message):
        gallery.make(name, (size, size), dtype)


def test_impossible_rank_is_refused():
    with pytest.raises(ValueError, match="between 0 and 2"):
        gallery.random_with_rank((2, 5), torch.float64, 3)
