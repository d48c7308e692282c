import numpy as np
import pytest
import torch

from strategies import operations
from strategies.accuracy import gallery, gradient, lu_gradient_at_factors
from tests.factors.cofactors import cofactors

SHAPES = ((5, 5), (7, 4), (4, 7))
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
ONES = torch.ones(3, 3)
IN_PLACE = torch.tensor([1, 2], dtype=torch.int32)


@pytest.mark.parametrize("operation", operations.names())
def test_agrees_with_autograd(operation):
    record = operations.get(operation)
    for m, n in SHAPES[:1] if record.square else SHAPES:
        for batch in ((), (2, 2)):
            for dtype in (torch.float64, torch.complex128):
                matrix = record.domain.member(torch.randn(*batch, m, n, dtype=dtype))
                inputs = matrix, torch.randn(*batch, m, 2, dtype=dtype)
                leaves = [tensor.requires_grad_() for tensor in inputs[: record.arity]]
                outputs = record.outputs(record.function(*leaves, strategy="native"))
                cotangents = [*map(torch.randn_like, outputs)]
                computed = record.defined(torch.autograd.grad(outputs, leaves, cotangents))
                exact = gradient(operation, leaves, cotangents)
                assert exact.relative_error(computed) < 1e-11


def _factors(shape, rank, dtype):
    """Of integers, so that their product is exact."""

    def integers(*size):
        values = torch.randint(-3, 4, size).to(dtype)
        if dtype.is_complex:
            values = values + 1j * torch.randint(-3, 4, size)
        return values + 4 * torch.eye(*size, dtype=dtype)

    return integers(shape[0], rank), integers(rank, shape[1])


def _canonical_lu(a, rank, order):
    """Eliminate `rank` columns without looking for pivots; the rest of the factors is zero."""
    rest, packed = a[order], torch.zeros_like(a)
    for i in range(rank):
        packed[i, i:] = rest[i, i:]
        packed[i + 1 :, i] = rest[i + 1 :, i] / rest[i, i]
        rest = rest - torch.outer(rest[:, i] / rest[i, i], rest[i])
    return packed


@pytest.mark.parametrize("operation", ["pinv", "lstsq", "lu_factor"])
def test_deficient_rank_agrees_with_differences_of_the_factors(operation):
    rank, step = 2, 1e-5
    for shape in SHAPES:
        for dtype in (torch.float64, torch.complex128):
            left, right = _factors(shape, rank, dtype)
            a, b = left @ right, torch.randn(shape[0], 2, dtype=dtype)
            packed, pivots = torch.linalg.lu_factor_ex(a)[:2]
            stays = torch.arange(1, len(pivots) + 1, dtype=pivots.dtype)
            permutation = torch.lu_unpack(packed, torch.cat([pivots[:rank], stays[rank:]]))[0]
            order = permutation.real.argmax(0)

            def value(matrix, order=order, b=b):
                if operation == "lu_factor":
                    return _canonical_lu(matrix, rank, order)
                inverse = torch.linalg.pinv(matrix, rtol=1e-9)
                return inverse if operation == "pinv" else inverse @ b

            cotangent = torch.randn_like(value(a))
            inputs = (a, b) if operation == "lstsq" else (a,)
            exact = gradient(operation, inputs, (cotangent,), rank=rank).gradients[0]
            for _ in range(4):
                moves = torch.randn_like(left), torch.randn_like(right)
                ahead = value((left + step * moves[0]) @ (right + step * moves[1]))
                behind = value((left - step * moves[0]) @ (right - step * moves[1]))
                expected = (cotangent.conj() * (ahead - behind)).real.sum() / (2 * step)
                found = (exact.conj() * (moves[0] @ right + left @ moves[1])).real.sum()
                torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_det_at_corank_one_is_the_matrix_of_cofactors():
    for dtype in (torch.float64, torch.complex128):
        for size in (1, 2, 4):
            a = torch.zeros(1, 1, dtype=dtype)
            if size > 1:
                left, right = _factors((size, size), size - 1, dtype)
                a = left @ right
            exact = gradient("det", (a,), (torch.tensor(2.0, dtype=dtype),), rank=size - 1)
            expected = 2 * torch.tensor(cofactors(a.tolist()), dtype=dtype).conj()
            assert exact.relative_error((expected,)) < 1e-12


@pytest.mark.parametrize(
    ("operation", "matrix", "cotangent", "rank"),
    [
        ("pinv", torch.zeros(3, 3), torch.ones(3, 3), 0),
        ("lu_factor", torch.zeros(3, 3), torch.ones(3, 3), 0),
        ("det", torch.ones(3, 3), torch.tensor(1.0), 1),
    ],
)
def test_rank_zero_and_a_determinant_at_corank_two_have_no_gradient(
    operation, matrix, cotangent, rank
):
    assert not gradient(operation, (matrix,), (cotangent,), rank=rank).gradients[0].any()


def test_factors_that_are_exact_give_the_gradient_at_the_matrix():
    for m, n in SHAPES:
        for dtype in DTYPES:
            k = min(m, n)
            packed = torch.randint(1, 4, (m, n)).to(dtype)
            pivots = torch.arange(1, k + 1).flip(0).clamp(min=torch.arange(1, k + 1)).int()
            lower = packed[:, :k].tril(-1) + torch.eye(m, k, dtype=dtype)
            permutation = torch.lu_unpack(packed, pivots)[0]
            matrix = permutation @ lower @ packed[:k].triu()
            cotangent = torch.randn(m, n, dtype=dtype)
            at_factors = lu_gradient_at_factors(packed, pivots, cotangent)
            at_matrix = gradient("lu_factor", (matrix,), (cotangent,), pivots=pivots)
            assert at_factors.relative_error(at_matrix.gradients) < 1e-15


def test_singular_stored_factors_are_refused():
    packed = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    with pytest.raises(ValueError, match="zero on its diagonal"):
        lu_gradient_at_factors(packed, IN_PLACE, torch.ones(2, 2))


def test_precision_is_doubled_until_it_suffices():
    matrix = gallery.make("random_condition_max", (16, 16), torch.float64).matrix
    exact = gradient("pinv", (matrix,), (torch.ones_like(matrix),))
    assert exact.bits == 512
    assert exact.radius < 2.0**-73


def test_cotangents_left_out_count_as_zero():
    matrix = torch.randn(3, 3, dtype=torch.float64)
    for operation, last in (("slogdet", torch.ones(()).double()), ("lu", torch.ones_like(matrix))):
        both = gradient(operation, (matrix,), (torch.zeros_like(last), last))
        assert both.relative_error(gradient(operation, (matrix,), (last,)).gradients) < 1e-15


def test_condition_beyond_the_dtype_is_no_obstacle():
    matrix = torch.tensor([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]], dtype=torch.float64)
    exact = gradient("inv", (matrix,), (torch.eye(2, dtype=torch.float64),))
    inverse = 2.0**52 * torch.tensor([[1.0 + 2.0**-52, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert exact.relative_error((-(inverse @ inverse),)) < 2.0**-52


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**1000])
def test_gradients_out_of_range_are_still_known(scale):
    matrix = torch.eye(2, dtype=torch.float64) * scale
    exact = gradient("inv", (matrix,), (torch.eye(2, dtype=torch.float64),))
    part = exact.parts[0]
    assert part.high[0, 0] * 2.0 ** (float(part.exponent) + 2 * np.log2(scale)) == -1


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 3, 2)])
@pytest.mark.parametrize("operation", ["lu_factor", "pinv"])
def test_empty_matrices_and_batches(operation, shape):
    matrix = torch.ones(shape)
    exact = gradient(operation, (matrix,), (matrix if operation == "lu_factor" else matrix.mT,))
    assert exact.gradients[0].shape == shape
    assert exact.relative_error((matrix,)) == 0


def test_vector_right_hand_side_keeps_its_shape():
    matrix, rhs = torch.eye(3).expand(2, 3, 3), torch.ones(2, 3)
    exact = gradient("solve", (matrix, rhs), (torch.ones(2, 3),))
    assert [g.shape for g in exact.gradients] == [(2, 3, 3), (2, 3)]


HIDDEN = torch.tensor([[1.0, 0, 1], [0, 1, 2.0**-130], [1, 2.0**-130, 1]], dtype=torch.float64)
"""Of rank 3 by a tiny entry alone."""

COLUMN = torch.tensor([[0.0, 1.0], [0.0, 2.0]])
ALMOST_REGULAR = torch.diag(torch.tensor([1.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    ("operation", "inputs", "cotangents", "message", "options"),
    [
        ("pinv", (ONES,), (ONES,), "rank 1, not 3", {}),
        ("inv", (ONES,), (ONES,), "rank 1, not 3", {}),
        ("slogdet", (ONES,), (torch.tensor(1.0),), "rank 1, not 3", {}),
        ("qr", (torch.eye(2),), (torch.eye(2),), "'qr'.*pinv", {}),
        ("pinv", (torch.ones(2, 3),), (torch.ones(2, 3),), r"\[\(3, 2\)\], got \[\(2, 3\)\]", {}),
        ("pinv", (torch.ones(2, 3),), (), r"\[\(3, 2\)\], got \[\]", {}),
        ("inv", (torch.ones(2, 3),), (torch.ones(3, 2),), "square", {}),
        ("solve", (torch.eye(2),), (torch.ones(2, 1),), "2 inputs, got 1", {}),
        ("inv", (torch.full((1, 1), torch.nan),), (torch.ones(1, 1),), "finite", {}),
        ("inv", (torch.eye(2),), (torch.eye(2, dtype=torch.float64),), "float32", {}),
        ("inv", (torch.ones(2),), (torch.ones(2),), "two dimensions", {}),
        ("lu_factor", (HIDDEN,), (HIDDEN,), "rank 3, not 2", {"rank": 2}),
        ("lu", (HIDDEN,), (HIDDEN,), "rank 3, not 2", {"rank": 2}),
        ("pinv", (torch.eye(3),), (ONES,), "rank", {"rank": 2}),
        ("lu_factor", (torch.eye(3),), (ONES,), "rank", {"rank": 2}),
        ("pinv", (ALMOST_REGULAR,), (ONES,), "rank", {"rank": 1}),
        ("lu_factor", (ALMOST_REGULAR,), (ONES,), "rank", {"rank": 1}),
        ("lu_factor", (COLUMN,), (COLUMN,), "leading 1×1 block", {"rank": 1}),
        ("inv", (torch.eye(2),), (torch.ones(2, 2),), "inv has no pivots", {"pivots": IN_PLACE}),
    ],
)
def test_what_does_not_fit_is_refused(operation, inputs, cotangents, message, options):
    with pytest.raises(ValueError, match=message):
        gradient(operation, inputs, cotangents, **options)
