"""The kernels of small matrices where matrices or cotangents are unusual, and what they decline."""

import itertools

import pytest
import torch
from comparison import drawn

from strategies.accuracy import gallery
from strategies.kernels.cpu.library import DTYPES
from strategies.kernels.cpu.plans import plan
from strategies.kernels.cpu.specs import SPECS
from tests.kernels.cpu.by_plan import (
    EVERY,
    PASS_ON,
    SHAPES,
    SQUARE,
    assert_exact,
    computed,
    each_plan,
    each_plan_that_scales,
    inputs_of,
    layout,
    plan_of,
    size_of,
)

WITH_RIGHT_HAND_SIDES = [
    (of, shape)
    for of in EVERY
    for shape in ((2, 2), (33, 33), (9, 4), (4, 9))
    if of[1] in ("solve", "lstsq", "cholesky_solve") and shape in SHAPES.get(of, SQUARE)
]


@pytest.mark.parametrize("holds", ["factors", "packs"])
@pytest.mark.parametrize("operation", ["solve", "lstsq"])
def test_a_right_hand_side_of_zeros_is_a_usual_one(holds, operation):
    A, B = torch.eye(3).repeat(40, 1, 1), torch.ones(40, 3, 2)
    B[11] = 0
    outputs, _ = plan_of((holds, operation), A, B).forward((A, B))
    assert torch.equal(outputs[0], B)


def test_one_unusual_matrix_of_a_batch_is_declined():
    A = torch.eye(3).repeat(500, 1, 1)
    found = plan_of(("factors", "inv"), A)
    assert found.forward((A,)) is not None
    A[411, 1, 1] = 0
    assert found.forward((A,)) is None


@each_plan
def test_what_is_not_usual_is_declined(of):
    for dtype in DTYPES:
        usual = inputs_of(of, *size_of(of, 8), dtype)
        A, *rest = usual
        no_column, undefined = A.clone(), A.clone()
        no_column[:, 3], undefined[2, 1] = 0, torch.nan
        takes_singular = of[0] in ("cod", "svd") or "det" in of[1]
        undecided = () if takes_singular else (no_column,)
        singular = () if takes_singular or of[1] == "lu" else (torch.zeros_like(A),)
        not_finite = () if of[1] in PASS_ON else (undefined, A * torch.inf)
        for unusual in (*undecided, *singular, *not_finite):
            assert plan_of(of, unusual, *rest).forward((unusual, *rest)) is None
        if "det" not in of[1] and not of[1].startswith("lu"):
            power = 50 if torch.finfo(dtype).eps > 1e-10 else 400
            # Of Cholesky factors, whose squares are as long as A.
            far = A * 2.0 ** (2 * power if of[1] == "cholesky" else power)
            assert plan_of(of, *usual).forward((far, *rest)) is None


@pytest.mark.parametrize("holds", ["factors", "packs"])
@pytest.mark.parametrize("operation", ["inv", "solve", "pinv", "lstsq"])
@pytest.mark.parametrize(
    ("dtype", "power"), [(torch.float64, -250), (torch.float64, 250), (torch.float32, 35)]
)
def test_a_matrix_far_from_one_scales_results_to_the_bit(holds, operation, dtype, power):
    A, *rest = inputs_of((holds, operation), 9, 9, dtype)
    if found := plan_of((holds, operation), A, *rest):
        (expected, *_), _ = found.forward((A, *rest))
        (result, *_), _ = found.forward((A * 2.0**power, *rest))
        assert torch.equal(result, expected * 2.0**-power)


@pytest.mark.parametrize(("of", "shape"), WITH_RIGHT_HAND_SIDES)
@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 55), (torch.complex128, 400)])
def test_right_hand_sides_far_from_one_scale_results_to_the_bit(of, shape, dtype, power):
    for columns, scale in itertools.product((1, 9), (2.0**power, 2.0**-power)):
        A, B = inputs_of(of, *shape, dtype, columns)
        (X, *_), cotangents, (of_A, of_B) = computed(of, (A, B))
        (scaled, *_), _, gradients = computed(of, (A, B * scale), cotangents)
        assert torch.equal(scaled, X * scale)
        assert torch.equal(gradients[0], of_A * scale)
        assert torch.equal(gradients[1], of_B)
        if of[1] == "lstsq" and shape[0] > shape[1]:
            # Squared residuals are quadratic in B: B̄ is the same by a cotangent that is divided.
            of_residuals = torch.randn(columns, dtype=A.real.dtype)
            _, _, due = computed(of, (A, B), [cotangents[0], of_residuals])
            given = [cotangents[0], of_residuals / scale]
            _, _, gradients = computed(of, (A, B * scale), given)
            assert torch.equal(gradients[0], due[0] * scale)
            assert torch.equal(gradients[1], due[1])


@pytest.mark.parametrize(("of", "shape"), WITH_RIGHT_HAND_SIDES)
@pytest.mark.parametrize(("dtype", "unit"), [(torch.float32, 18), (torch.float64, 145)])
def test_far_operands_and_cotangents_together_are_declined_or_right(of, shape, dtype, unit):
    A, B = inputs_of(of, *shape, dtype)
    (X, *_), (G, *_), due = computed(of, (A, B))
    degree = 2 if of[1] == "cholesky_solve" else 1  # of A in the factor
    found = plan_of(of, A, B)
    for a, b, g in itertools.product((-2, -1, 0, 1, 2), (-5, -3, 0, 2, 3, 5), (-6, -1, 0, 1, 6)):
        of_A, of_B, of_G = (2.0 ** (unit * each) for each in (a, b, g))
        inputs = A * of_A, B * of_B
        if (forward := found.forward(inputs)) is None:
            continue
        outputs, kept = forward
        scale = of_B / of_A**degree
        torch.testing.assert_close(outputs[0].double() / scale, X.double(), rtol=1e-4, atol=1e-5)
        saved = (*inputs, *(outputs[i] for i in found.saved), *kept)
        cotangents = [None if i in found.optional else G * of_G for i in found.cotangents]
        gradients = found.backward(saved, tuple(cotangents))
        scales = (of_G * of_B / of_A ** (degree + 1), of_G / of_A**degree)
        for one, other, scale in zip(gradients or (), due, scales, strict=False):
            if torch.finfo(dtype).tiny * 2**20 < scale < torch.finfo(dtype).max / 2**20:
                torch.testing.assert_close(
                    one.double() / scale, other.double(), rtol=1e-4, atol=1e-5
                )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [7, 8, 60])
@pytest.mark.parametrize("operation", ["inv", "solve", "pinv"])
def test_growth_is_declined(operation, n, dtype):
    """Of Wilkinson's matrix, whose last column doubles at every step, from far down the batch."""
    A = torch.eye(n, dtype=dtype).repeat(5, 1, 1)
    inputs = (A, torch.ones(5, n, 1, dtype=dtype)) if operation == "solve" else (A,)
    found = plan_of(("factors", operation), *inputs)
    assert found.forward(inputs) is not None
    A[3] = gallery.make("wilkinson_growth", (n, n), dtype).matrix
    assert (found.forward(inputs) is None) == (n > 7)


@pytest.mark.parametrize("kind", ["rows of different sizes", "orthogonal"])
@pytest.mark.parametrize("n", [4, 9, 64])
def test_determinants_of_regular_matrices_are_computed_whatever_their_growth(n, kind):
    rows, columns = torch.arange(n) + 0.5, torch.arange(n)
    cosines = torch.outer(rows, columns).mul(torch.pi / n).cos().repeat(40, 1, 1)
    graded = drawn(40, n, n).float() * 10.0 ** torch.linspace(-3, 3, n).unsqueeze(-1)
    A = cosines if kind == "orthogonal" else graded
    assert plan_of(("factors", "det"), A).forward((A,)) is not None
    (_, found), _, (gradient,) = computed(("factors", "slogdet"), (A,), [torch.ones(40)])
    exact, inverse = torch.linalg.slogdet(A.double()), torch.linalg.inv(A.double())
    torch.testing.assert_close(found.double(), exact.logabsdet, rtol=1e-5, atol=1e-4)
    amplified = inverse.abs() @ A.double().abs() @ inverse.abs()
    error = (gradient.mT.double() - inverse).abs() / amplified
    assert error.max() < 100 * torch.finfo(A.dtype).eps


def test_columns_that_are_small_beside_others_keep_their_digits():
    B = drawn(12, 12)
    scales = 2.0 ** -(4.0 * torch.arange(12, dtype=torch.float64))
    A = B * scales
    expected = torch.linalg.inv(B) / scales.unsqueeze(-1)
    (found,), _ = plan_of(("factors", "inv"), A).forward((A,))
    error = (found - expected).norm(dim=-1) / expected.norm(dim=-1)
    assert error.max() < 1e-10


def _by_another_cotangent(of, change):
    """The gradients, and those after a change of the first cotangent."""
    inputs = inputs_of(of, *size_of(of, 6), torch.float64)
    _, (cotangent, *rest), gradients = computed(of, inputs)
    return gradients, computed(of, inputs, [change(cotangent), *rest])[2]


@each_plan_that_scales
@pytest.mark.parametrize("scale", [2.0**400, 2.0**-400])
def test_a_cotangent_far_from_one_scales_the_gradients_to_the_bit(of, scale):
    gradients, scaled = _by_another_cotangent(of, lambda G: G * scale)
    assert all(
        torch.equal(one, other * scale) for one, other in zip(scaled, gradients, strict=True)
    )


@each_plan_that_scales
def test_a_cotangent_at_the_end_of_the_range_is_declined(of):
    assert _by_another_cotangent(of, lambda G: torch.full_like(G, 2.0**1000))[1] is None


@pytest.mark.parametrize("of", [of for of in EVERY if of[1] != "lu"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_a_cotangent_that_is_not_finite_is_passed_on(of, number):
    _, gradients = _by_another_cotangent(of, lambda G: torch.full_like(G, number))
    assert not any(bool(each.isfinite().any()) for each in gradients)


@pytest.mark.parametrize("operation", PASS_ON)
@pytest.mark.parametrize("count", [1, 9])
def test_a_matrix_that_is_not_finite_makes_no_other_undefined(operation, count):
    of = "factors", operation
    inputs = [torch.stack([each] * count) for each in inputs_of(of, 6, 6, torch.float64)]
    for number in (torch.nan, torch.inf):
        inputs[0][0, 2, 1] = number
        outputs, _, gradients = computed(of, tuple(inputs), torch.ones_like)
        for each in (outputs[-1], *gradients):  # of `slogdet` the logarithm
            assert not each[0].isfinite().any()
            assert each[1:].isfinite().all()


@pytest.mark.parametrize("holds", SPECS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("columns", [2, 7])
def test_squared_residuals_have_a_gradient(holds, dtype, columns):
    for count in (1, 9):
        inputs = inputs_of((holds, "lstsq"), 8, 3, dtype, columns)
        A, B = (torch.stack([each] * count).requires_grad_() for each in inputs)
        expected = (B - A @ (torch.linalg.pinv(A) @ B)).abs().square().sum(-2)
        given = torch.randn_like(expected)
        due = torch.autograd.grad(expected, (A, B), given)
        nothing = torch.zeros(count, 3, columns, dtype=dtype)
        for cotangent in (given, given.repeat_interleave(2, -1)[..., ::2]):
            cotangents = [nothing, cotangent]
            *_, gradients = computed((holds, "lstsq"), (A.detach(), B.detach()), cotangents)
            torch.testing.assert_close(tuple(gradients), due)


@pytest.mark.parametrize("holds", ["factors", "packs"])
def test_nearly_deficient_matrices_are_declined(holds):
    for m, n in ((9, 6), (6, 6), (6, 9)):
        U, S, Vh = torch.linalg.svd(drawn(m, n), full_matrices=False)
        S[-1] = 1e-16
        A, B = U * S @ Vh, torch.ones(m, 1, dtype=torch.float64)
        assert plan_of((holds, "pinv"), A).forward((A,)) is None
        if found := plan_of((holds, "lstsq"), A, B):
            assert found.forward((A, B)) is None


@pytest.mark.parametrize("holds", ["cod", "svd"])
@pytest.mark.parametrize("operation", SPECS["svd"])
def test_matrices_of_any_rank_have_exact_gradients(holds, operation):
    of = holds, operation
    for ((m, n), rank), dtype in itertools.product(
        (((9, 6), 4), ((6, 6), 3), ((6, 9), 5), ((4, 4), 1)), DTYPES
    ):
        # Of small integers, none of them zero, so that the product has that rank exactly.
        left, right = (
            torch.randint(1, 4, size) * (2 * torch.randint(2, size) - 1)
            for size in ((m, rank), (rank, n))
        )
        inputs = (left @ right).to(dtype), *inputs_of(of, m, n, dtype)[1:]
        outputs, cotangents, gradients = computed(of, inputs)
        assert_exact(operation, inputs, cotangents, gradients, rank)
        if operation == "lstsq":
            assert outputs[1].numel() == 0
            assert int(outputs[2]) == rank


@pytest.mark.parametrize("holds", ["cod", "svd"])
@pytest.mark.parametrize("operation", SPECS["svd"])
def test_a_matrix_of_zeros_has_rank_zero_and_no_gradient(holds, operation):
    of = holds, operation
    for (m, n), dtype in itertools.product(((9, 6), (6, 6), (6, 9)), DTYPES):
        usual = inputs_of(of, m, n, dtype)
        inputs = torch.zeros_like(usual[0]), *usual[1:]
        outputs, _, gradients = computed(of, inputs)
        assert not any(each.any() for each in (*outputs, *gradients))


@pytest.mark.parametrize(("m", "n", "rank"), [(9, 6, 4), (12, 12, 5), (6, 9, 3)])
def test_a_cod_finds_the_columns_that_span_the_range(m, n, rank):
    independent = drawn(m, rank)
    A = torch.cat((independent[:, :1].expand(-1, n - rank), independent), 1)
    B = torch.ones(m, 2, dtype=torch.float64)
    (found,), _ = plan_of(("cod", "pinv"), A).forward((A,))
    torch.testing.assert_close(found, torch.linalg.pinv(A))
    (X, _, found_rank, _), _ = plan_of(("cod", "lstsq"), A, B).forward((A, B))
    torch.testing.assert_close(X, torch.linalg.pinv(A) @ B)
    assert int(found_rank) == rank


@pytest.mark.parametrize("at", [1e-9, 1.2e-15, 1e-16], ids=["kept", "near", "dropped"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-15])
def test_a_cod_declines_where_the_rank_is_not_certain(at, rtol):
    U, V = (torch.linalg.qr(drawn(n, 6))[0] for n in (9, 6))
    A = U * torch.tensor([1, 1, 0.5, 0.25, 0.1, at], dtype=torch.float64) @ V.mT
    found = plan("cod", "pinv", torch.float64, layout(A), tolerances=(0.0, rtol)).forward((A,))
    # What is dropped is to be noise, and what is kept well above the tolerance.
    is_kept, is_noise = at > 10 * rtol, at < rtol and at < 2e-15
    assert (found is not None) == (is_kept or is_noise)


@pytest.mark.parametrize("operation", SPECS["svd"])
def test_rows_or_columns_of_unlike_length_are_declined_by_an_svd(operation):
    of = "svd", operation
    for m, n in ((6, 4), (4, 6), (5, 5)):
        A, *rest = inputs_of(of, m, n, torch.float64)
        assert plan_of(of, A, *rest).forward((A, *rest)) is not None
        graded = A.clone()
        graded[..., 0] *= 1e-3
        longer = A.clone()
        longer[0] *= 1e3
        unlike = [each for each, is_long in ((graded, m >= n), (longer, m <= n)) if is_long]
        for each in unlike:
            assert plan_of(of, each, *rest).forward((each, *rest)) is None


def test_there_are_no_plans_for_what_is_no_small_matrix_and_no_sequence_of_them():
    double, matrix, batch = torch.float64, ((4, 4), (4, 1)), ((2, 4, 4), (16, 4, 1))
    assert plan("factors", "inv", double, ((2, 3), (3, 1))) is None
    assert plan("factors", "inv", torch.float16, matrix) is None
    assert plan("factors", "inv", double, ((0, 0), (1, 1))) is None
    assert plan("factors", "inv", double, ((2100, 2100), (2100, 1))) is None
    assert plan("factors", "inv", double, ((0, 4, 4), (16, 4, 1))) is None
    assert plan("factors", "inv", double, ((2, 3, 4, 4), (16, 32, 4, 1))) is None
    assert plan("factors", "solve", double, matrix, ((3, 1), (1, 1))) is None
    assert plan("factors", "solve", double, batch, ((4, 1), (1, 1))) is None
    assert plan("factors", "matrix_exp", double, matrix) is None


def test_a_determinant_beyond_the_range_has_an_infinite_gradient_without_nan():
    A = torch.eye(12) * 2.0**20
    A[0, 1] = A[1, 0] = 3.0
    (det,), _, (gradient,) = computed(("factors", "det"), (A,), [torch.tensor(torch.inf)])
    assert det.isinf()
    assert not gradient.diagonal().isnan().any()
    assert gradient[0, 1].isinf()
