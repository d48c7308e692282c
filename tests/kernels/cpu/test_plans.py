"""The kernels of small matrices against exact gradients, and what they decline."""

import functools
import itertools

import pytest
import torch

from strategies import operations
from strategies.accuracy import gradient
from strategies.kernels.cpu.plans import plan
from strategies.kernels.cpu.specs import SPECS, Problem

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
SQUARE = ((1, 1), (2, 2), (5, 5), (33, 33))
ANY = (*SQUARE, (9, 4), (3, 1), (4, 9), (1, 3))
SHAPES = {
    ("factors", "lu_factor"): ANY,
    ("factors", "lu"): ANY,
    ("factors", "pinv"): ANY,
    ("factors", "lstsq"): ANY,
    ("packs", "lu_factor"): ANY,
    ("packs", "pinv"): ANY,
    ("packs", "lstsq"): (*SQUARE, (9, 4), (3, 1), (40, 7)),
    **{(holds, operation): ANY for holds in ("cod", "svd") for operation in ("pinv", "lstsq")},
}
EVERY = [
    (holds, operation)
    for holds, specs in SPECS.items()
    for operation, spec in specs.items()
    if (operation in operations.names() and spec(Problem(5, 5, 1, False, torch.float64, 1)))
    or (holds, operation) in SHAPES
]
"""Those that have a record, and with it exact gradients."""

PASS_ON = "inv", "solve", "det", "slogdet"
"""What takes a matrix with NaN or infinity: no entry of the result is finite."""


def _size(of, n):
    """Of a square matrix, or of a tall one where packs of these have kernels of their own."""
    return (n + 3, n) if of in (("packs", "pinv"), ("packs", "lstsq")) else (n, n)


def _layout(tensor):
    return tuple(tensor.shape), tensor.stride()


def _plan(of, *inputs):
    return plan(*of, inputs[0].dtype, *map(_layout, inputs))


def _inputs(of, m, n, dtype, columns=2):
    generator = torch.Generator().manual_seed(m * 100 + n)
    operation = operations.get(of[1])
    A = torch.randn(m, n, dtype=dtype, generator=generator) + 3 * torch.eye(m, n, dtype=dtype)
    A = operation.domain.member(A)
    if operation.arity == 1:
        return (A,)
    return A, torch.randn(m, columns, dtype=dtype, generator=generator)


def _computed(of, inputs, cotangents=torch.randn_like):
    """Outputs, cotangents and gradients of a plan; cotangents that may be missing are.

    Cotangents are given, or made of the outputs.
    """
    found = _plan(of, *inputs)
    outputs, kept = found.forward(inputs)
    if callable(cotangents):
        make, which = cotangents, found.cotangents
        cotangents = [None if i in found.optional else make(outputs[i]) for i in which]
    saved = (*inputs, *(outputs[i] for i in found.saved), *kept)
    return outputs, cotangents, found.backward(saved, tuple(cotangents))


def _assert_exact(operation, inputs, cotangents, gradients, rank=None):
    given = [each for each in cotangents if each is not None]
    certified = gradient(operation, inputs, given, rank=rank)
    singular_values = torch.linalg.svdvals(inputs[0])[:rank]
    limit = 500 * torch.finfo(inputs[0].dtype).eps * float(singular_values[0] / singular_values[-1])
    assert certified.relative_error(operations.get(operation).defined(gradients)) < limit


def _due(of, inputs):
    """What torch returns; of `lstsq` by the driver that does what the plan does."""
    holds, operation = of
    if operation == "lstsq" and holds == "svd":
        return tuple(torch.linalg.lstsq(*inputs, driver="gelsd"))
    if operation == "lstsq":
        due = torch.linalg.lstsq(*inputs, driver="gels")
        # The one driver for matrices of full rank does not tell the rank.
        rank = torch.linalg.lstsq(*inputs, driver="gelsy").rank
        return due.solution, due.residuals, rank, due.singular_values
    expected = operations.get(operation).of_torch(*inputs)
    return (expected,) if isinstance(expected, torch.Tensor) else tuple(expected)


@pytest.mark.parametrize("of", EVERY)
def test_gradients_are_the_exact_ones(of):
    operation = of[1]
    for (m, n), dtype in itertools.product(SHAPES.get(of, SQUARE), DTYPES):
        inputs = _inputs(of, m, n, dtype)
        _, cotangents, gradients = _computed(of, inputs)
        if operation == "slogdet" and not dtype.is_complex:
            cotangents = [torch.zeros((), dtype=dtype), *cotangents]
        _assert_exact(operation, inputs, cotangents, gradients)


@pytest.mark.parametrize("of", EVERY)
def test_results_are_those_of_torch(of):
    for (m, n), dtype in itertools.product(SHAPES.get(of, SQUARE), DTYPES):
        inputs = _inputs(of, m, n, dtype)
        outputs, *_ = _computed(of, inputs)
        expected = _due(of, inputs)
        limit = 500 * torch.finfo(dtype).eps * float(torch.linalg.cond(inputs[0]))
        for found, due in zip(outputs, expected, strict=True):
            assert (found.shape, found.dtype) == (due.shape, due.dtype)
            assert torch.allclose(found, due, rtol=limit, atol=limit)


@pytest.mark.parametrize("of", EVERY)
def test_inputs_and_cotangents_may_have_any_strides(of):
    m, n = (5, 3) if of in SHAPES else (4, 4)
    plain = _inputs(of, m, n, torch.complex128)
    outputs, cotangents, expected = _computed(of, plain)
    strided = tuple(torch.stack([each, each], -1)[..., 0] for each in plain)
    of_strided = [
        each.mT.contiguous().mT if each is not None and each.ndim == 2 else each
        for each in cotangents
    ]
    found, _, gradients = _computed(of, strided, of_strided)
    # Factors are read where they lie: by rows, in another order of sums.
    close = functools.partial(torch.allclose, rtol=1e-12, atol=1e-12)
    same = close if of[1].startswith("cholesky_") else torch.equal
    assert all(map(same, found, outputs))
    assert all(map(same, gradients, expected))


@pytest.mark.parametrize("n", [3, 5, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_expanded_cotangent_is_read_as_its_copy_is(n, axis):
    of = "factors", "inv"
    inputs = _inputs(of, n, n, torch.float64)
    row = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expanded = row.unsqueeze(axis).expand(n, n)
    *_, (found,) = _computed(of, inputs, [expanded])
    *_, (expected,) = _computed(of, inputs, [expanded.contiguous()])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("operation", ["cholesky_solve", "cholesky_inverse"])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_expanded_factor_is_read_as_its_copy_is(operation, axis):
    of = "factors", operation
    n = 40
    row = torch.linspace(1, 2, n, dtype=torch.float64)
    if axis == 0:  # of equal rows the triangle is singular only by its condition
        row = row * 2.0 ** torch.arange(n)
    expanded = row.unsqueeze(axis).expand(n, n)
    rest = () if operation == "cholesky_inverse" else (torch.ones(n, 6, dtype=torch.float64),)
    found, expected = (
        _plan(of, L, *rest).forward((L, *rest)) for L in (expanded, expanded.contiguous())
    )
    assert (found is None) == (expected is None)
    if found is not None:
        assert torch.isfinite(found[0][0]).all()
        error = (found[0][0] - expected[0][0]).norm()
        assert error <= 1e-6 * expected[0][0].norm()


@pytest.mark.parametrize("shape", [(40, 3), (6, 9)])
def test_least_squares_of_few_and_many_columns_have_exact_gradients(shape):
    of = "factors", "lstsq"
    for columns, dtype in itertools.product((1, 4, 5, 12), DTYPES):
        inputs = _inputs(of, *shape, dtype, columns)
        _, cotangents, gradients = _computed(of, inputs)
        _assert_exact("lstsq", inputs, cotangents, gradients)


def test_gradients_of_a_tall_pinv_lie_as_those_of_torch():
    single = torch.linalg.qr(torch.randn(9, 4, dtype=torch.float64)).Q
    for A in (single, single.repeat(2, 1, 1)):
        *_, (gradient,) = _computed(("factors", "pinv"), (A,))
        leaf = A.clone().requires_grad_()
        X = torch.linalg.pinv(leaf)
        (due,) = torch.autograd.grad(X, leaf, torch.ones_like(X))
        assert gradient.stride() == due.stride()


@pytest.mark.parametrize("operation", ["cholesky_solve", "cholesky_inverse"])
def test_a_factor_may_lie_by_rows_or_by_columns(operation):
    of = "factors", operation
    for dtype in DTYPES:
        L, *rest = _inputs(of, 40, 40, dtype)
        by_columns, apart = L.mT.contiguous().mT, torch.stack([L, L], -1)[..., 0]
        results = []
        for layout in (L, by_columns, apart):
            generator = torch.Generator().manual_seed(1)
            cotangent = torch.randn(40, 2 if rest else 40, dtype=dtype, generator=generator)
            outputs, _, gradients = _computed(of, (layout, *rest), [cotangent])
            results.append((*outputs, *gradients))
        limit = 100 * torch.finfo(dtype).eps * float(torch.linalg.cond(L)) ** 2
        for found in results[1:]:
            for one, other in zip(found, results[0], strict=True):
                assert (one - other).norm() <= limit * other.norm()


@pytest.mark.parametrize("of", EVERY)
def test_matrices_of_a_batch_are_computed_as_they_are_alone(of):
    for m, n in SHAPES.get(of, SQUARE):
        each = [_inputs(of, m, n, torch.complex64) for _ in range(6)]
        each = [(A + k * torch.eye(m, n), *rest) for k, (A, *rest) in enumerate(each)]
        inputs = [torch.stack(parts).unflatten(0, (2, 3)) for parts in zip(*each, strict=True)]
        outputs, cotangents, gradients = _computed(of, inputs)
        for k, single in enumerate(each):
            place = divmod(k, 3)
            own = [None if each is None else each[place] for each in cotangents]
            due, _, due_gradients = _computed(of, single, own)
            found = [out if out.numel() == 0 else out[place] for out in outputs]
            found += [gradient[place] for gradient in gradients]
            for one, other in zip(found, (*due, *due_gradients), strict=True):
                # To roundoff: LAPACK divides its work differently by threads and addresses.
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("of", EVERY)
def test_results_of_a_batch_are_laid_out_as_those_of_torch(of):
    inputs = [each.expand(2, 3, *each.shape) for each in _inputs(of, *_size(of, 4), torch.float64)]
    outputs, _, gradients = _computed(of, inputs)
    expected = _due(of, inputs)
    assert [out.shape for out in outputs] == [due.shape for due in expected]
    assert [gradient.shape for gradient in gradients] == [each.shape for each in inputs]


@pytest.mark.parametrize("holds", ["factors", "packs"])
@pytest.mark.parametrize("operation", ["solve", "lstsq"])
def test_a_right_hand_side_of_zeros_is_a_usual_one(holds, operation):
    A, B = torch.eye(3).repeat(40, 1, 1), torch.ones(40, 3, 2)
    B[11] = 0
    outputs, _ = _plan((holds, operation), A, B).forward((A, B))
    assert torch.equal(outputs[0], B)


def test_one_unusual_matrix_of_a_batch_is_declined():
    A = torch.eye(3).repeat(500, 1, 1)
    found = _plan(("factors", "inv"), A)
    assert found.forward((A,)) is not None
    A[411, 1, 1] = 0
    assert found.forward((A,)) is None


def test_batches_that_are_no_sequence_of_matrices_have_no_plan():
    assert _plan(("factors", "inv"), torch.ones(3, 2, 4, 4).transpose(0, 1)) is None


def test_cotangents_that_are_no_sequence_of_matrices_are_copied():
    A = torch.ones(2, 3, 4, 4) + torch.eye(4)
    G = torch.arange(96.0).view(3, 2, 4, 4).transpose(0, 1)
    (found,), (expected,) = (
        _computed(("factors", "inv"), (A,), [each])[2] for each in (G, G.contiguous())
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("operation", ["solve", "lstsq"])
def test_a_vector_is_a_column(operation):
    of = "factors", operation
    A, B = _inputs(of, 6, 6 if operation == "solve" else 4, torch.float64, columns=1)
    outputs, cotangents, gradients = _computed(of, (A, B))
    of_vector = [cotangents[0].squeeze(-1), *cotangents[1:]]
    found, _, found_gradients = _computed(of, (A, B.squeeze(-1)), of_vector)
    assert torch.equal(found[0], outputs[0].squeeze(-1))
    assert torch.equal(found_gradients[0], gradients[0])
    assert torch.equal(found_gradients[1], gradients[1].squeeze(-1))


@pytest.mark.parametrize("of", EVERY)
def test_what_is_not_usual_is_declined(of):
    for dtype in DTYPES:
        usual = _inputs(of, *_size(of, 8), dtype)
        A, rest = usual[0], usual[1:]
        no_column = A.clone()
        no_column[:, 3] = 0
        undefined = A.clone()
        undefined[2, 1] = torch.nan
        of_factors = (no_column,) if of[0] in ("factors", "packs") else ()
        not_finite = () if of[1] in PASS_ON else (undefined, A * torch.inf)
        for unusual in (*of_factors, torch.zeros_like(A), *not_finite):
            assert _plan(of, unusual, *rest).forward((unusual, *rest)) is None
        found = _plan(of, *usual)
        if "det" not in of[1] and not of[1].startswith("lu"):
            far = A * 2.0**50 if torch.finfo(dtype).eps > 1e-10 else A * 2.0**400
            assert found.forward((far, *rest)) is None


@pytest.mark.parametrize("holds", ["factors", "packs"])
@pytest.mark.parametrize("operation", ["inv", "solve", "pinv", "lstsq"])
@pytest.mark.parametrize("power", [-250, 250])
def test_a_matrix_far_from_one_scales_results_to_the_bit(holds, operation, power):
    A, *rest = _inputs((holds, operation), 9, 9, torch.float64)
    if found := _plan((holds, operation), A, *rest):
        (expected, *_), _ = found.forward((A, *rest))
        (result, *_), _ = found.forward((A * 2.0**power, *rest))
        assert torch.equal(result, expected * 2.0**-power)


@pytest.mark.parametrize("operation", ["inv", "solve", "pinv"])
def test_growth_is_declined(operation):
    A = torch.eye(60, dtype=torch.float64) - torch.ones(60, 60, dtype=torch.float64).tril(-1)
    A[:, -1] = 1  # its last column doubles in every step
    rest = (torch.ones(60, 1, dtype=torch.float64),) if operation == "solve" else ()
    assert _plan(("factors", operation), A, *rest).forward((A, *rest)) is None


def test_columns_that_are_small_beside_others_keep_their_digits():
    B = torch.randn(12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scales = 2.0 ** -(4.0 * torch.arange(12, dtype=torch.float64))
    A = B * scales
    expected = torch.linalg.inv(B) / scales.unsqueeze(-1)
    (found,), _ = _plan(("factors", "inv"), A).forward((A,))
    error = (found - expected).norm(dim=-1) / expected.norm(dim=-1)
    assert error.max() < 1e-10


@pytest.mark.parametrize("of", [of for of in EVERY if "det" not in of[1] and of[1] != "lu"])
def test_a_cotangent_far_from_one_scales_the_gradients_to_the_bit(of):
    inputs = _inputs(of, *_size(of, 6), torch.float64)
    _, (cotangent, *rest), gradients = _computed(of, inputs)
    for scale in (2.0**400, 2.0**-400):
        scaled = _computed(of, inputs, [cotangent * scale, *rest])[2]
        for found, expected in zip(scaled, gradients, strict=True):
            assert torch.equal(found, expected * scale)


@pytest.mark.parametrize("of", [of for of in EVERY if "det" not in of[1] and of[1] != "lu"])
def test_a_cotangent_at_the_end_of_the_range_is_declined(of):
    inputs = _inputs(of, *_size(of, 6), torch.float64)
    _, (cotangent, *rest), _ = _computed(of, inputs)
    assert _computed(of, inputs, [torch.full_like(cotangent, 2.0**1000), *rest])[2] is None


@pytest.mark.parametrize("of", [of for of in EVERY if of[1] != "lu"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_a_cotangent_that_is_not_finite_is_passed_on(of, number):
    inputs = _inputs(of, *_size(of, 6), torch.float64)
    _, (cotangent, *rest), _ = _computed(of, inputs)
    *_, gradients = _computed(of, inputs, [torch.full_like(cotangent, number), *rest])
    assert not any(bool(each.isfinite().any()) for each in gradients)


@pytest.mark.parametrize("operation", PASS_ON)
@pytest.mark.parametrize("count", [1, 9])
def test_a_matrix_that_is_not_finite_makes_no_other_undefined(operation, count):
    inputs = [
        torch.stack([each] * count) for each in _inputs((None, operation), 6, 6, torch.float64)
    ]
    A = inputs[0]
    for number in (torch.nan, torch.inf):
        A[0, 2, 1] = number
        outputs, _, gradients = _computed(("factors", operation), tuple(inputs), torch.ones_like)
        for each in (outputs[-1], *gradients):  # of `slogdet` the logarithm
            assert not each[0].isfinite().any()
            assert each[1:].isfinite().all()


@pytest.mark.parametrize("holds", SPECS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("columns", [2, 7])
def test_squared_residuals_have_a_gradient(holds, dtype, columns):
    for count in (1, 9):
        inputs = _inputs((holds, "lstsq"), 8, 3, dtype, columns)
        A, B = (torch.stack([each] * count).requires_grad_() for each in inputs)
        expected = (B - A @ (torch.linalg.pinv(A) @ B)).abs().square().sum(-2)
        given = torch.randn_like(expected)
        due = torch.autograd.grad(expected, (A, B), given)
        nothing = torch.zeros(count, 3, columns, dtype=dtype)
        for cotangent in (given, given.repeat_interleave(2, -1)[..., ::2]):
            cotangents = [nothing, cotangent]
            *_, gradients = _computed((holds, "lstsq"), (A.detach(), B.detach()), cotangents)
            for ours, theirs in zip(gradients, due, strict=True):
                torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("holds", ["factors", "packs"])
def test_nearly_deficient_matrices_are_declined(holds):
    generator = torch.Generator().manual_seed(0)
    for m, n in ((9, 6), (6, 6), (6, 9)):
        A = torch.randn(m, n, dtype=torch.float64, generator=generator)
        U, S, Vh = torch.linalg.svd(A, full_matrices=False)
        S[-1] = 1e-16
        B = torch.ones(m, 1, dtype=torch.float64)
        A = U * S @ Vh
        assert _plan((holds, "pinv"), A).forward((A,)) is None
        if found := _plan((holds, "lstsq"), A, B):
            assert found.forward((A, B)) is None


@pytest.mark.parametrize("holds", ["cod", "svd"])
@pytest.mark.parametrize("operation", ["pinv", "lstsq"])
def test_matrices_of_any_rank_have_exact_gradients(holds, operation):
    of = holds, operation
    generator = torch.Generator().manual_seed(0)
    for ((m, n), rank), dtype in itertools.product(
        (((9, 6), 4), ((6, 6), 3), ((6, 9), 5), ((4, 4), 1)), DTYPES
    ):
        # Of small integers, none of them zero, so that the product has that rank exactly.
        left, right = (
            torch.randint(1, 4, size, generator=generator)
            * (2 * torch.randint(2, size, generator=generator) - 1)
            for size in ((m, rank), (rank, n))
        )
        inputs = (left @ right).to(dtype), *_inputs(of, m, n, dtype)[1:]
        outputs, cotangents, gradients = _computed(of, inputs)
        _assert_exact(operation, inputs, cotangents, gradients, rank)
        if operation == "lstsq":
            assert outputs[1].numel() == 0
            assert int(outputs[2]) == rank


def _sums(m, n, rank):
    """Columns of ones at first, so that those that span the range are not the first ones."""
    generator = torch.Generator().manual_seed(m + n)
    A = torch.randn(m, rank, dtype=torch.float64, generator=generator)
    return torch.cat((A[:, :1].expand(-1, n - rank), A), 1)


@pytest.mark.parametrize(("m", "n", "rank"), [(9, 6, 4), (12, 12, 5), (6, 9, 3)])
def test_a_cod_finds_the_columns_that_span_the_range(m, n, rank):
    A, B = _sums(m, n, rank), torch.ones(m, 2, dtype=torch.float64)
    (found,), _ = _plan(("cod", "pinv"), A).forward((A,))
    torch.testing.assert_close(found, torch.linalg.pinv(A))
    (X, _, found_rank, _), _ = _plan(("cod", "lstsq"), A, B).forward((A, B))
    torch.testing.assert_close(X, torch.linalg.pinv(A) @ B)
    assert int(found_rank) == rank


@pytest.mark.parametrize("at", [1e-9, 1.2e-15, 1e-16], ids=["kept", "near", "dropped"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-15])
def test_a_cod_declines_where_the_rank_is_not_certain(at, rtol):
    U, V = (torch.linalg.qr(_inputs(("cod", "pinv"), n, 6, torch.float64)[0])[0] for n in (9, 6))
    values = torch.tensor([1, 1, 0.5, 0.25, 0.1, at], dtype=torch.float64)
    A = U * values @ V.mT
    found = plan("cod", "pinv", torch.float64, _layout(A), tolerances=(0.0, rtol)).forward((A,))
    # What is dropped is to be noise, and what is kept well above the tolerance.
    is_kept, is_noise = at > 10 * rtol, at < rtol and at < 2e-15
    assert (found is not None) == (is_kept or is_noise)


@pytest.mark.parametrize("operation", SPECS["svd"])
def test_rows_or_columns_of_unlike_length_are_declined_by_an_svd(operation):
    of = "svd", operation
    for m, n in ((6, 4), (4, 6), (5, 5)):
        A, *rest = _inputs(of, m, n, torch.float64)
        assert _plan(of, A, *rest).forward((A, *rest)) is not None
        graded = A.clone()
        graded[..., 0] *= 1e-3
        longer = A.clone()
        longer[0] *= 1e3
        unlike = [each for each, is_long in ((graded, m >= n), (longer, m <= n)) if is_long]
        for each in unlike:
            assert _plan(of, each, *rest).forward((each, *rest)) is None


def test_there_are_no_plans_for_what_is_no_small_matrix():
    matrix = ((4, 4), (4, 1))
    assert plan("factors", "inv", torch.float64, ((2, 3), (3, 1))) is None
    assert plan("factors", "inv", torch.float16, matrix) is None
    assert plan("factors", "inv", torch.float64, ((0, 0), (1, 1))) is None
    assert plan("factors", "inv", torch.float64, ((2100, 2100), (2100, 1))) is None
    assert plan("factors", "solve", torch.float64, matrix, ((3, 1), (1, 1))) is None
    batch = ((2, 4, 4), (16, 4, 1))
    assert plan("factors", "solve", torch.float64, batch, ((4, 1), (1, 1))) is None
    assert plan("factors", "inv", torch.float64, ((0, 4, 4), (16, 4, 1))) is None
    assert plan("factors", "matrix_exp", torch.float64, matrix) is None


def test_a_determinant_beyond_the_range_has_an_infinite_gradient_without_nan():
    A = torch.eye(12) * 2.0**20
    A[0, 1] = A[1, 0] = 3.0
    (det,), _, (gradient,) = _computed(("factors", "det"), (A,), [torch.tensor(torch.inf)])
    assert det.isinf()
    assert not gradient.diagonal().isnan().any()
    assert gradient[0, 1].isinf()
