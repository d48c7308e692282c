"""`cholesky`, `cholesky_ex`, `cholesky_solve` and `cholesky_inverse`: what only they promise."""

import functools
import itertools
import re

import pytest
import torch
from comparison import drawn, error_of, require_alike
from operations import ALL_DTYPES, STRATEGIES, each_dtype

import strategies
from strategies import linalg
from strategies.formulas.domains import LOWER_TRIANGULAR, POSITIVE_DEFINITE

each_strategy = pytest.mark.parametrize("strategy", strategies.available())


def _positive_definite(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return POSITIVE_DEFINITE.member(drawn(*shape, dtype=dtype))


def _factor(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return LOWER_TRIANGULAR.member(drawn(*shape, dtype=dtype))


@each_strategy
def test_what_is_not_positive_definite_is_refused_in_the_words_of_torch(strategy):
    for n, dtype in itertools.product(range(1, 10), ALL_DTYPES):
        A = torch.eye(n, dtype=dtype).repeat(2, 2, 1, 1)
        A[1, 0, -1, -1] = -1
        for matrix in (A, A[1, 0], 0 * A[0, 0], torch.nan * A[0, 0]):
            due = error_of(torch.linalg.cholesky, matrix)
            assert error_of(linalg.cholesky, matrix, strategy=strategy) == due
    _, due = error_of(torch.linalg.cholesky_ex, A, check_errors=True)
    # PyTorch names its function there, too.
    _, found = error_of(linalg.cholesky_ex, A, check_errors=True, strategy=strategy)
    assert re.sub(r"\w+(_ex)?:", "", found) == re.sub(r"\w+(_ex)?:", "", due)


@each_dtype
@pytest.mark.parametrize("n", [3, 7, 20])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "auto"])
def test_the_ex_form_reports_and_has_no_derivative_where_there_is_no_factor(strategy, n, dtype):
    A = _positive_definite(9, n, n, dtype=dtype)
    A[4, n // 2, n // 2] *= -1
    A[6] = 0
    G, direction = (_positive_definite(9, n, n, dtype=dtype) for _ in range(2))
    is_definite = torch.linalg.cholesky_ex(A).info == 0

    def derivatives(A, function, G, direction):
        L, of_L = torch.func.jvp(lambda A: function(A)[0], (A,), (direction,))
        A = A.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(A)[0], A, G, create_graph=True)
        (second,) = torch.autograd.grad(first, A, direction)
        return L, of_L, first, second

    def ours(A):
        return linalg.cholesky_ex(A, strategy=strategy)

    torch.testing.assert_close(ours(A).info, torch.linalg.cholesky_ex(A).info)
    L, *found = derivatives(A, ours, G, direction)
    A, G, direction = (each[is_definite] for each in (A, G, direction))
    alone = derivatives(A, lambda A: (linalg.cholesky(A, strategy=strategy),), G, direction)
    for each, due in zip((L, *found), alone, strict=True):
        torch.testing.assert_close(each[is_definite], due)
    tangent, *gradients = (each[~is_definite].isnan() for each in found)
    assert tangent.flatten(1).any(1).all()
    assert all(map(torch.all, gradients))


@each_dtype
@each_strategy
def test_upper_factors_are_those_of_torch(strategy, dtype):
    A, B = _positive_definite(2, 4, 4, dtype=dtype), drawn(2, 4, 3, dtype=dtype)
    U = torch.linalg.cholesky(A, upper=True)
    A, U, B = (each.requires_grad_() for each in (A, U, B))
    pairs = (
        (linalg.cholesky, torch.linalg.cholesky, (A,), {"upper": True}),
        (linalg.cholesky_solve, torch.cholesky_solve, (B, U), {"upper": True}),
        (linalg.cholesky_inverse, torch.cholesky_inverse, (U,), {"upper": True}),
    )
    for ours, theirs, inputs, options in pairs:
        found, due = ours(*inputs, **options, strategy=strategy), theirs(*inputs, **options)
        torch.testing.assert_close(found, due)
        assert not found.is_conj()
        G = drawn(*due.shape, dtype=dtype)
        gradients = [torch.autograd.grad(each, inputs, G)[-1] for each in (found, due)]
        part = POSITIVE_DEFINITE.part if inputs[-1] is A else torch.triu
        a, b = map(part, gradients)
        if dtype.is_complex:  # the diagonal of a factor is real
            a, b = (each - 1j * torch.diag_embed(each.diagonal(0, -2, -1).imag) for each in (a, b))
        torch.testing.assert_close(a, b)


@each_dtype
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_gradient_of_a_matrix_is_hermitian_and_that_of_a_factor_is_pytorchs(strategy, dtype):
    A, L = (f(2, 5, 5, dtype=dtype).requires_grad_() for f in (_positive_definite, _factor))
    B, G = drawn(2, 5, 2, dtype=dtype), drawn(2, 5, 5, dtype=dtype)
    (of_A,) = torch.autograd.grad(linalg.cholesky(A, strategy=strategy), A, G)
    assert torch.equal(of_A, of_A.mH)
    ours = functools.partial(linalg.cholesky_solve, strategy=strategy)
    require_alike(ours, torch.cholesky_solve, B, L)
    ours = functools.partial(linalg.cholesky_inverse, strategy=strategy)
    require_alike(ours, torch.cholesky_inverse, L)


@pytest.mark.parametrize("upper", [False, True])
def test_second_derivatives_of_a_factorization_read_one_triangle(upper):
    A = _positive_definite(4, 4)
    other = torch.full_like(A, torch.nan).triu(1)
    filled = A + (other.mT if upper else other)
    entry = (1, 2, 1, 2) if upper else (2, 1, 2, 1)

    def second(A):
        return torch.func.hessian(lambda A: linalg.cholesky(A, upper=upper).sin().sum())(A)[entry]

    torch.testing.assert_close(second(filled), second(A))


@pytest.mark.parametrize("entry", [1.0, 1e200, torch.inf, torch.nan])
@pytest.mark.parametrize("name", ["cholesky_solve", "cholesky_inverse"])
@each_strategy
def test_of_a_factor_the_other_triangle_is_not_read(strategy, name, entry):
    L, B = _factor(5, 5), drawn(5, 2)
    rhs = (B,) if name == "cholesky_solve" else ()
    filled = L + torch.full_like(L, entry).triu(1)

    def results(L):
        L = L.clone().requires_grad_()
        result = getattr(linalg, name)(*rhs, L, strategy=strategy)
        return result, *torch.autograd.grad(result.sum(), L)

    compared = 1 if strategy == "native" else 2  # PyTorch's gradient reads both
    torch.testing.assert_close(results(filled)[:compared], results(L)[:compared])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_factor_with_a_complex_diagonal_is_inverted(strategy):
    L = (_factor(2, 3, 3, dtype=torch.complex128) * (0.6 + 0.8j)).requires_grad_()
    found, expected = linalg.cholesky_inverse(L, strategy=strategy), torch.linalg.inv(L @ L.mH)
    torch.testing.assert_close(found, expected)
    G = torch.randn_like(found)
    gradients = [torch.autograd.grad(each, L, G) for each in (found, expected)]
    torch.testing.assert_close(*gradients)
