"""Values and gradients of every operation by every strategy against `torch.linalg`."""

import functools
import itertools
import math

import pytest
import torch
from comparison import drawn, require_alike
from operations import (
    ALL_DTYPES,
    ANY_RANK,
    DTYPES,
    STRATEGIES,
    function,
    inputs_of,
    pairs,
    reference,
    shapes_of,
)

from strategies import linalg

SHAPES = [(0, 0), (1, 1), (5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (70, 66)]
BATCHES = [(), (2,), (0,), (2, 1), (2, 3)]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize(("operation", "strategy"), pairs())
def test_values_and_gradients_are_those_of_torch(operation, strategy, dtype):
    precision = 1e-2 if dtype.to_real() == torch.float32 else 1e-8
    tolerance = {"rtol": precision, "atol": precision}
    for shape, batch in itertools.product(shapes_of(operation, SHAPES), BATCHES):
        if shape == (70, 66) and batch not in ((), (2,)):
            continue
        inputs = inputs_of(operation, shape, batch, dtype)
        values = function(operation, strategy)(*inputs)
        expected = reference(operation)(*inputs)
        torch.testing.assert_close(values, expected, **tolerance)
        if operation.pivoted and 0 in shape:
            continue  # torch gives no gradient there
        cotangents = [torch.ones_like(value) for value in expected]
        torch.testing.assert_close(
            torch.autograd.grad(values, inputs, cotangents, materialize_grads=True),
            torch.autograd.grad(expected, inputs, cotangents, materialize_grads=True),
            **tolerance,
            msg=lambda why, at=(shape, batch): f"{at}: {why}",
        )


def products_of_any_rank():
    """With their ranks."""
    shapes = [(3, 3), (5, 3), (3, 5), (6, 6), (8, 5), (5, 8)]
    for shape, rank, dtype in itertools.product(shapes, range(4), DTYPES):
        a, b = (torch.randn(size, rank, dtype=dtype) for size in shape)
        yield a @ b.mT, rank


@pytest.mark.parametrize("strategy", ANY_RANK)
def test_pinv_and_lstsq_of_a_product_of_any_rank_are_those_of_torch(strategy):
    for A, _ in products_of_any_rank():
        B = torch.randn(len(A), 2, dtype=A.dtype)
        solution = linalg.lstsq(A, B, strategy=strategy).solution
        torch.testing.assert_close(linalg.pinv(A, strategy=strategy), torch.linalg.pinv(A))
        torch.testing.assert_close(solution, torch.linalg.lstsq(A, B, driver="gelsd").solution)


def test_lu_of_a_product_of_any_rank_is_that_of_torch_up_to_the_rank_and_canonical_beyond():
    for A, rank in products_of_any_rank():
        P, L, U = linalg.lu(A, strategy="triangular_solve")
        P_, L_, U_ = torch.linalg.lu(A)
        torch.testing.assert_close(U, U_)
        torch.testing.assert_close((P @ L)[:, :rank], (P_ @ L_)[:, :rank])
        torch.testing.assert_close(P @ L @ U, A)
        assert torch.all(U[rank:] == 0)
        assert torch.equal(L[rank:, rank:], torch.eye(*L[rank:, rank:].shape, dtype=A.dtype))


@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
@pytest.mark.parametrize(
    ("A_shape", "B_shape", "count"),
    [
        ((5, 3), (5, 2), 3),  # not the singular values, which not all have
        ((5, 3), (5,), 3),
        ((2, 5, 3), (2, 5), 3),
        ((3, 5), (3, 1), 3),
        ((3, 6, 2), (1, 6, 1), 3),
        ((1, 6, 2), (3, 6, 1), 3),
        ((2, 1, 6, 2), (1, 3, 6, 1), 3),
        *(((6, 3, n), (1, 3, 2), 3) for n in (3, 7)),
        *(((1, 3, n), (6, 3, 2), 3) for n in (3, 7)),
        *(((2, 1, 3, n), (1, 3, 3, 2), 3) for n in (3, 7)),
        ((1, 6, 2), (0, 6, 1), 1),
    ],
)
def test_lstsq_takes_vectors_and_batches_of_size_one_as_torch_does(
    strategy, A_shape, B_shape, count
):
    ours = functools.partial(linalg.lstsq, strategy=strategy)
    theirs = functools.partial(torch.linalg.lstsq, driver="gelsd")
    require_alike(
        *(lambda *given, call=call: call(*given)[:count] for call in (ours, theirs)),
        drawn(*A_shape).requires_grad_(),
        drawn(*B_shape, seed=1).requires_grad_(),
    )


def test_lstsq_singular_values_where_the_strategy_has_them():
    A, B = torch.randn(5, 3), torch.randn(5, 1)
    found = linalg.lstsq(A, B, strategy="svd_truncated_pinv").singular_values
    torch.testing.assert_close(found, torch.linalg.svdvals(A))
    assert linalg.lstsq(A, B, strategy="triangular_solve").singular_values.numel() == 0


@pytest.mark.parametrize("entry", [1.0, 1e150, torch.inf, torch.nan])
@pytest.mark.parametrize("is_differentiated", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pinv_hermitian_reads_the_lower_triangle_only(strategy, is_differentiated, entry):
    A = torch.randn(4, 4, dtype=torch.complex128) + 4 * torch.eye(4)
    hermitian = A.tril(-1) + A.tril(-1).mH + torch.diag_embed(A.diagonal().real)
    filled = (A.tril() + torch.full_like(A, entry).triu(1)).requires_grad_(is_differentiated)
    torch.testing.assert_close(
        linalg.pinv(filled, hermitian=True, strategy=strategy).detach(),
        torch.linalg.pinv(hermitian),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradient_of_a_matrix_taken_for_hermitian_is_that_at_the_mirrored_triangle(strategy):
    A, G, E = (torch.randn(4, 4, dtype=torch.complex128) for _ in range(3))
    A, E = A + 4 * torch.eye(4), E + E.mH
    leaf = A.clone().requires_grad_()
    linalg.pinv(leaf, hermitian=True, strategy=strategy).backward(G)
    after, before = (torch.linalg.pinv(A + h * E, hermitian=True) for h in (1e-6, -1e-6))
    difference = (G.conj() * (after - before)).sum().real / 2e-6
    torch.testing.assert_close((leaf.grad.conj() * E).sum().real, difference, rtol=1e-6, atol=1e-8)


TOLERANCES = [
    *({name: each} for name in ("rtol", "atol") for each in (-1.0, math.nan, 0.1, 0.5, 5.0)),
    *({name: torch.tensor([-1.0, 0.7, math.nan])} for name in ("rtol", "atol")),
    {"atol": torch.tensor([0.5, 1.0, 0.0]), "rtol": torch.tensor([0.01, 0.01, 0.01])},
]


@pytest.mark.parametrize("strategy", ["qr_pinv", "svd_truncated_pinv"])
@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_pinv_tolerances_are_broadcast_with_the_batch_and_cut_where_torch_cuts(tolerance, strategy):
    U, _ = torch.linalg.qr(torch.randn(3, 1, 6, 4, dtype=torch.float64))
    A = U * torch.tensor([2.0, 1.0, 0.15, 0.0], dtype=torch.float64)
    found = linalg.pinv(A, strategy=strategy, **tolerance)
    torch.testing.assert_close(found, torch.linalg.pinv(A, **tolerance))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_lu_factor_and_lu_agree_with_the_ex_form(strategy, shape):
    A = torch.randn(shape, dtype=torch.float64)
    LU, pivots, info = linalg.lu_factor_ex(A, strategy=strategy)
    assert torch.equal(LU, linalg.lu_factor(A, strategy=strategy).LU)
    assert torch.equal(pivots, torch.linalg.lu_factor(A).pivots)
    assert int(info) == 0
    P, L, U = linalg.lu(A, strategy=strategy)
    torch.testing.assert_close(P @ L @ U, A)


@pytest.mark.parametrize("batch", [(), (300,)])
@pytest.mark.parametrize("strategy", ["fused", "batch_last", "explicit_inverse", "auto"])
def test_an_inverse_is_laid_out_as_that_of_torch(strategy, batch):
    A = torch.randn(*batch, 6, 6, dtype=torch.float64)
    assert linalg.inv(A, strategy=strategy).stride() == torch.linalg.inv(A).stride()
