"""`det` and `slogdet` of singular, badly scaled and undefined matrices, by every strategy."""

import functools

import pytest
import torch
from comparison import drawn
from fuzz.derivative import derivative, numbers_of, over_numbers, words
from operations import ALL_DTYPES, DTYPES, STRATEGIES, complex_first

from strategies import linalg
from strategies.accuracy import gallery
from strategies.accuracy.stability import LIMIT, references
from tests.factors.cofactors import determinant, entries

each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)

GRADED = [[1e10, 0.0, 0.0], [0.0, 1e-10, 1e-10], [0.0, 1e-10, 1e-10]]


def gradient(function, A, strategy):
    A = A.clone().requires_grad_()
    result = function(A, strategy=strategy)
    return torch.autograd.grad(result, A, torch.ones_like(result))[0]


def logabsdet(A, *, strategy):
    return linalg.slogdet(A, strategy=strategy).logabsdet


def expanded(A):
    return determinant(entries(A))


def second(function, A):
    """The derivative of the gradient in a random direction, the same for all of a batch."""
    leaf = A.clone().requires_grad_()
    (first,) = torch.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
    direction = drawn(*A.shape[-2:], seed=2).expand(A.shape)
    return torch.autograd.grad(first, leaf, direction)[0]


def put(A, value, *places):
    for place in places:
        A[place] = value
    return A


ROW, COLUMN = 2, (slice(None), 3)
SINGULAR_BY_ZEROS = {
    "row": lambda A: put(A, 0, ROW),
    "column": lambda A: put(A, 0, COLUMN),
    "both": lambda A: put(A, 0, ROW, COLUMN),
    "two rows": lambda A: put(A, 0, ROW, 4),
    "equal rows": lambda A: put(A, A[1], ROW),
    "equal rows and a column": lambda A: put(put(A, A[1], ROW), 0, COLUMN),
    "above the diagonal": lambda A: A.triu(1),
    "shift": lambda A: torch.diag(torch.ones(4), 1),
    "all": torch.zeros_like,
}
"""What makes a matrix exactly singular, and elimination come upon pivots that are zero."""


def hard_matrices(dtype):
    """Each with its rank."""
    scale = 2.0 ** (400 if dtype.to_real() == torch.float64 else 40)
    regular = gallery.make("random_condition_2", (3, 3), dtype).matrix
    yield torch.tensor([[2, 4], [3, 6]], dtype=dtype), 1
    yield torch.tensor([[torch.finfo(dtype).smallest_normal / 8]], dtype=dtype), 1
    yield regular * scale, 3
    yield regular / scale, 3
    integers = torch.arange(25).view(5, 5) % 7 - 3
    for changed in SINGULAR_BY_ZEROS.values():
        A = changed(integers.clone())
        yield A.to(dtype), int(torch.linalg.matrix_rank(A.double()))
    hard = "zero_row", "half_rank", "laplacian", "wilkinson_growth", "one_tiny_singular_value"
    for name in hard:
        specimen = gallery.make(name, (9, 9), dtype)
        yield specimen.matrix, specimen.rank


@functools.cache
def exact(operation, dtype):
    """The hard matrices with what is exact of each, whatever the strategy."""
    kind = dtype.to_real() if operation == "slogdet" else dtype
    return [
        (A, *references(operation, (A,), (torch.ones((), dtype=kind),), rank=rank))
        for A, rank in hard_matrices(dtype)
        if rank == len(A) or operation == "det"
    ]


@each_strategy
@pytest.mark.parametrize(("name", "function"), [("det", linalg.det), ("slogdet", logabsdet)])
def test_values_and_gradients_are_stable_where_lu_is_not_and_at_every_scale(
    name, function, strategy
):
    for dtype in ALL_DTYPES:
        for A, (*_, of_A), (of_gradient,) in exact(name, dtype):
            found = function(A, strategy=strategy), gradient(function, A, strategy)
            for each, due in zip(found, (of_A, of_gradient), strict=True):
                assert not due.is_representable or max(due.ratio(each)) < LIMIT


@each_strategy
def test_gradients_of_matrices_that_are_singular_by_their_zeros_are_exact(strategy):
    for dtype in ALL_DTYPES:
        nilpotent = torch.tensor([[0, 1], [0, 0]], dtype=dtype)
        assert gradient(linalg.det, nilpotent, strategy).tolist() == [[0, 0], [-1, 0]]
        assert gradient(linalg.det, torch.zeros(1, 1, dtype=dtype), strategy).tolist() == [[1]]
        assert not gradient(linalg.det, torch.zeros(3, 3, dtype=dtype), strategy).any()


@each_strategy
def test_the_adjugate_of_a_singular_graded_matrix_has_no_roundoff_of_its_largest_entry(strategy):
    for dtype in ALL_DTYPES:
        found = gradient(linalg.det, torch.tensor(GRADED, dtype=dtype), strategy)
        expected = torch.tensor([[0, 0, 0], [0, 1, -1], [0, -1, 1]], dtype=dtype)
        torch.testing.assert_close(found, expected)


def test_the_product_of_pivots_may_leave_the_range_on_the_way():
    A = torch.diag(torch.tensor([1e200, 1e200, 1e-200, 1e-200], dtype=torch.float64))
    assert linalg.det(A, strategy="triangular_solve") == pytest.approx(1, rel=1e-14)
    assert logabsdet(A, strategy="triangular_solve") == pytest.approx(0, abs=1e-14)
    ones = 1e-3 * torch.eye(200)
    assert logabsdet(ones, strategy="triangular_solve").item() == pytest.approx(-1381.551, rel=1e-5)


def test_matrices_of_a_batch_are_as_each_alone():
    for dtype in ALL_DTYPES:
        A = torch.stack(
            [A for A, _ in hard_matrices(dtype) if len(A) == 3] + [torch.eye(3, dtype=dtype)]
        )
        alone = torch.stack([gradient(linalg.det, each, "batch_last") for each in A])
        torch.testing.assert_close(gradient(linalg.det, A, "batch_last"), alone)
        twice = torch.stack([A, A])
        torch.testing.assert_close(gradient(linalg.det, twice, "batch_last")[1], alone)


def test_forward_mode_and_the_differentiable_gradient_agree_with_the_gradient():
    det = functools.partial(linalg.det, strategy="triangular_solve")
    for dtype in DTYPES:
        for A, _ in hard_matrices(dtype):
            expected = gradient(linalg.det, A, "triangular_solve")
            differentiable = torch.func.vjp(torch.func.grad(lambda A: det(A).real), A)[0]
            tangent = torch.randn_like(A)
            _, along = torch.func.jvp(det, (A,), (tangent,))
            limit = 1e-12 * (expected.abs().max() + 1e-30)  # of the adjugate that is zero
            assert (differentiable - expected).abs().max() <= limit
            error = along - (expected.conj() * tangent).sum()
            assert error.abs() <= limit * tangent.abs().sum()


def of_every_corank():
    a, b = drawn(2, 4, 3, 3)
    return a * (torch.arange(3) < torch.tensor([[3], [2], [1], [0]])).unsqueeze(-2) @ b.mT


def nearly_singular():
    """One of a batch, of which a singular value is alone."""
    U, S, Vh = torch.linalg.svd(drawn(3, 4, 4, seed=1))
    S[1, -1] = 1e-9
    return U @ torch.diag_embed(S) @ Vh


SINGULAR = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=torch.float64)
OF_SECOND_ORDER = {
    "every corank": of_every_corank(),
    "singular": SINGULAR,
    "graded": torch.tensor(GRADED, dtype=torch.float64),
    "tiny": SINGULAR * 1e-120,
    "triangular": SINGULAR.triu(1),
    "nearly singular in a batch": nearly_singular(),
    "regular": nearly_singular()[0],
    "nearly singular": nearly_singular()[1],
}


@each_strategy
@pytest.mark.parametrize("kind", OF_SECOND_ORDER)
def test_second_derivatives_are_those_of_the_polynomial(kind, strategy):
    A = OF_SECOND_ORDER[kind]
    found = second(functools.partial(linalg.det, strategy=strategy), A)
    rtol, scale = (1e-10, 1.0) if "nearly" in kind else (1e-12, float(A.abs().max()))
    torch.testing.assert_close(found, second(expanded, A), rtol=rtol, atol=rtol * scale)


def test_second_derivatives_scale_where_the_determinant_is_out_of_range():
    A = drawn(3, 12, 12).float()
    found = second(linalg.det, A * 2.0**-8) * 2.0**80
    torch.testing.assert_close(found, second(linalg.det, A))


def test_second_derivatives_of_low_rank_are_zero_and_those_of_others_of_the_batch_are_not():
    factors = torch.randn(2, 3, 12, 12, dtype=torch.float64)
    low, lower, high = (
        left[:, :rank] @ right[:rank]
        for left, right, rank in zip(*factors, (3, 1, 11), strict=True)
    )
    zeros = torch.zeros(12, 12, dtype=torch.float64)
    for strategy, most in (("triangular_solve", 0), ("auto", 1e-90)):
        det = functools.partial(linalg.det, strategy=strategy)
        found = second(det, torch.stack([low, lower, high, zeros]))
        assert found[[0, 1, 3]].abs().max() <= most
        torch.testing.assert_close(found[2], second(det, high))


@each_strategy
def test_nan_and_infinity_stay_with_their_matrix(strategy):
    for value in (torch.nan, torch.inf):
        A = torch.eye(2).repeat(2, 1, 1)
        A[1, 0, 1] = value
        for function in (linalg.det, logabsdet):
            found = gradient(function, A, strategy)
            assert found[0].isfinite().all()
            assert found[1].isnan().all()


@each_strategy
def test_logabsdet_may_be_overwritten_before_the_backward(strategy):
    A = torch.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    logabsdet(A, strategy=strategy).mul_(2).backward()
    assert A.grad.tolist() == [[1.0, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("word", words(3))
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@complex_first
def test_third_derivatives_are_those_of_a_polynomial_at_any_rank(rank, dtype, word):
    left, right = (torch.randint(-3, 4, size).to(dtype) for size in ((3, rank), (rank, 3)))
    A = left @ right

    def derived(det):
        def loss(A):
            value = numbers_of(det(A))
            return value.square().sum() + 0.7 * value.sum()

        of_numbers, x = over_numbers(loss, [A])
        return derivative(of_numbers, word, x)

    found, due = map(derived, (functools.partial(linalg.det, strategy="fused"), expanded))
    torch.testing.assert_close(found, due, rtol=1e-9, atol=1e-9)
