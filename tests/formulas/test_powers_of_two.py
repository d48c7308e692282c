"""Scaling by powers of two, and products out of range."""

import math

import torch

from strategies.formulas.powers_of_two import equilibrate, product, split, times_power_of_two

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128


def test_the_smallest_and_the_largest_numbers_are_scaled_to_one_and_back():
    for dtype in DTYPES:
        precision = torch.finfo(dtype)
        for number in (
            precision.smallest_normal * precision.eps,
            2.0 ** (math.frexp(precision.max)[1] - 1),
        ):
            power = torch.tensor(math.frexp(number)[1] - 1)
            x = torch.tensor(number, dtype=dtype)
            assert times_power_of_two(x, -power) == 1
            assert times_power_of_two(torch.ones((), dtype=dtype), power) == x


def test_a_complex_number_out_of_range_is_infinite_and_not_nan():
    z = torch.tensor(1e30 + 1e-30j)
    assert times_power_of_two(z, torch.tensor(100)) == torch.tensor(
        complex(torch.inf, 2.0**100 * 1e-30)
    )


def test_split_returns_mantissas_of_about_one_and_zero_as_it_is():
    mantissas, exponents = split(torch.tensor([3.0, -0.25, 0.0, 1e-45]))
    assert mantissas[:3].tolist() == [0.75, -0.5, 0.0]
    assert exponents.tolist() == [2, -1, 0, -148]


def test_a_product_is_right_whatever_its_factors_in_between():
    for dtype in DTYPES:
        huge, tiny = torch.finfo(dtype).max / 4, torch.finfo(dtype).smallest_normal
        for size in (0, 1, 2, 3, 7, 200):
            x = torch.full((2, size), huge, dtype=dtype)
            x[1] = tiny
            mantissa, exponent = product(x)
            of_one = math.frexp(huge)[1], math.frexp(tiny)[1]
            expected = torch.tensor([math.frexp(huge)[0], math.frexp(tiny)[0]]) ** size
            found = times_power_of_two(mantissa, exponent - size * torch.tensor(of_one))
            torch.testing.assert_close(found.real.float(), expected)


def test_grading_of_rows_and_columns_by_powers_of_two_is_found_again():
    generator = torch.Generator().manual_seed(0)
    for dtype in DTYPES:
        A = 0.5 + torch.rand(3, 5, 5, generator=generator).to(dtype) / 2
        rows, columns = torch.randint(-30, 30, (2, 3, 5), generator=generator)
        powers = rows.unsqueeze(-1) + columns.unsqueeze(-2)
        found = equilibrate(times_power_of_two(A, powers))
        assert torch.equal(found.matrix, A)
        assert torch.equal(found.rows.unsqueeze(-1) + found.columns.unsqueeze(-2), powers)


def test_rows_and_columns_of_zeros_are_left_alone():
    A = torch.tensor([[0.0, 0.0], [0.0, 8.0]])
    found = equilibrate(A)
    assert found.matrix.tolist() == [[0.0, 0.0], [0.0, 0.5]]
    assert (found.rows + found.columns).tolist() == [0, 4]
