import math

import pytest
import torch

from strategies.accuracy import gallery, measures

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
REGULAR = [
    "diagonal",
    "upper_triangular",
    "lower_triangular",
    "random_condition_2",
    "random_condition_root",
    "graded_rows",
    "graded_columns",
    "kahan",
    "repeated_singular_values",
]


def _randn_like(tensor: torch.Tensor, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REGULAR)
@pytest.mark.parametrize("operation", ["lu_factor", "pinv", "inv"])
def test_autograd_passes_the_ratio_on_regular_matrices(
    operation: str, name: str, dtype: torch.dtype
) -> None:
    matrix = gallery.make(name, (16, 16), dtype).matrix.requires_grad_()
    pivots = None
    if operation == "lu_factor":
        output, pivots = torch.linalg.lu_factor(matrix)
    else:
        output = getattr(torch.linalg, operation)(matrix)
    cotangent = _randn_like(output)
    computed = torch.autograd.grad(output, matrix, cotangent)
    error = measures.gradient_error(operation, (matrix,), (cotangent,), computed, pivots=pivots)
    bound = measures.amplification(operation, (matrix,), (cotangent,))
    assert measures.error_ratio(error, bound, dtype) < measures.PASS_BELOW


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)], ids=str)
def test_stable_least_squares_passes_the_ratio(
    shape: tuple[int, int], noise: float, dtype: torch.dtype
) -> None:
    a = gallery.random_with_condition(shape, dtype, 3).matrix
    b = a @ _randn_like(a[0, :, None], 1) + noise * _randn_like(a[:, :1], 2)
    tall = shape[0] > shape[1]
    q, r = torch.linalg.qr(a if tall else a.mH)

    def along_r(rhs: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(r, q.mH @ rhs, upper=True)

    def against_r(rhs: torch.Tensor) -> torch.Tensor:
        return q @ torch.linalg.solve_triangular(r.mH, rhs, upper=False)

    apply, apply_adjoint = (along_r, against_r) if tall else (against_r, along_r)
    g = _randn_like(a[:1].mT, 3)
    x, z = apply(b), apply_adjoint(g)
    a_bar = (b - a @ x) @ apply(z).mH - z @ x.mH + apply_adjoint(x) @ (g - apply(a @ g)).mH
    error = measures.gradient_error("lstsq", (a, b), (g,), (a_bar, z))
    bound = measures.amplification("lstsq", (a, b), (g,))
    assert measures.error_ratio(error, bound, dtype) < measures.PASS_BELOW


def test_hidden_residual_amplifies_beyond_the_condition_number() -> None:
    a = torch.diag(torch.tensor([1.0, 1e-4], dtype=torch.float64))
    a = torch.cat([a, torch.zeros(1, 2, dtype=torch.float64)])
    b = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)
    g = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    bound = measures.amplification("lstsq", (a, b), (g,))
    assert 1e7 < float(bound) < 1e9


def test_lu_amplification_ignores_the_scaling_of_columns() -> None:
    a = _randn_like(torch.empty(8, 8, dtype=torch.float64))
    scaled = a * 2.0 ** -torch.arange(0, 80, 10)
    bounds = [measures.amplification("lu_factor", (m,), (m,)) for m in (a, scaled)]
    torch.testing.assert_close(*bounds)
    assert measures.condition_number(scaled) > 1e10


def test_added_error_excludes_the_factorization() -> None:
    a = gallery.make("random_condition_root", (16, 16), torch.float64).matrix.requires_grad_()
    packed, pivots = torch.linalg.lu_factor(a)
    g = _randn_like(packed)
    (computed,) = torch.autograd.grad(packed, a, g)
    added = measures.added_error(packed.detach(), pivots, g, computed)
    total = measures.gradient_error("lu_factor", (a,), (g,), (computed,), pivots=pivots)
    assert added < total / 10


def test_ratio_is_the_worst_of_the_batch() -> None:
    error, bound = torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0])
    assert measures.error_ratio(error * 2.0**-53, bound, torch.float64) == 2.0


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_ratio_of_what_is_not_finite_is_infinite(error: float) -> None:
    assert measures.error_ratio(error, 1.0, torch.float64) == math.inf


@pytest.mark.parametrize("shape", [(16, 16), (64, 64), (200, 8)], ids=str)
@pytest.mark.parametrize("log10_cond", [1, 6, 12])
def test_lu_amplification_predicts_the_error(log10_cond: int, shape: tuple[int, int]) -> None:
    a = gallery.random_with_condition(shape, torch.float64, log10_cond).matrix.requires_grad_()
    packed, pivots = torch.linalg.lu_factor(a)
    g = _randn_like(packed)
    computed = torch.autograd.grad(packed, a, g)
    error = measures.gradient_error("lu_factor", (a,), (g,), computed, pivots=pivots)
    ratio = measures.error_ratio(error, measures.lu_amplification(a), torch.float64)
    assert 0.05 < ratio < 5


@pytest.mark.parametrize("scale", [2.0**-1070, 1.0, 2.0**1000])
def test_condition_number_survives_the_ends_of_the_range(scale: float) -> None:
    matrix = torch.diag(torch.tensor([8.0, 2.0], dtype=torch.float64)) * scale
    assert float(measures.condition_number(matrix)) == pytest.approx(4.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)], ids=str)
def test_penrose_residuals_are_small_for_the_pseudoinverse(
    shape: tuple[int, int], dtype: torch.dtype
) -> None:
    a = gallery.random_with_rank(shape, dtype, 3, (2,))
    bound = measures.PASS_BELOW * a.condition * measures.unit_roundoff(dtype)
    for residual in measures.penrose_residuals(a.matrix, torch.linalg.pinv(a.matrix, rtol=1e-5)):
        assert residual.shape == (2,)
        assert (residual < bound).all()


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_penrose_residuals_survive_the_ends_of_the_range(scale: float) -> None:
    a = gallery.random_with_rank((6, 4), torch.float64, 4).matrix
    residuals = measures.penrose_residuals(a * scale, torch.linalg.pinv(a) / scale)
    assert all(residual < 1e-14 for residual in residuals)


@pytest.mark.parametrize(
    ("factor", "broken"), [(2.0, [True, True, False, False]), (-1.0, [True, True, False, False])]
)
def test_each_penrose_residual_has_its_own_task(factor: float, broken: list[bool]) -> None:
    a = gallery.random_with_rank((6, 4), torch.float64, 4).matrix
    residuals = measures.penrose_residuals(a, factor * torch.linalg.pinv(a))
    assert [bool(residual > 1e-3) for residual in residuals] == broken


@pytest.mark.parametrize("side", ["range", "corange"])
def test_penrose_symmetry_catches_a_generalized_inverse(side: str) -> None:
    """A⁺ + N with N vanishing on one side is a {1, 2} inverse, but AX or XA is not Hermitian."""
    a = gallery.random_with_rank((6, 4), torch.float64, 2).matrix
    x = torch.linalg.pinv(a, rtol=1e-9)
    noise = _randn_like(x)
    off_range, off_corange = torch.eye(6) - a @ x, torch.eye(4) - x @ a
    other = x + (x @ a @ noise @ off_range if side == "range" else off_corange @ noise @ a @ x)
    residuals = measures.penrose_residuals(a, other)
    expected = [False, False, side == "range", side == "corange"]
    assert [bool(residual > 1e-3) for residual in residuals] == expected


def test_penrose_residuals_of_zero_are_zero() -> None:
    residuals = measures.penrose_residuals(torch.zeros(3, 2), torch.zeros(2, 3))
    assert all(residual == 0 for residual in residuals)


def test_adjoint_identity_holds_for_autograd_and_fails_when_conjugation_is_forgotten() -> None:
    a = _randn_like(torch.empty(4, 4, dtype=torch.complex128), 1)
    output, move = torch.func.jvp(torch.linalg.inv, (a,), (_randn_like(a, 2),))
    cotangent = _randn_like(output, 3)
    (found,) = torch.func.vjp(torch.linalg.inv, a)[1](cotangent)
    tangent = _randn_like(a, 2)
    right = measures.adjoint_defect((cotangent,), (move,), (found,), (tangent,))
    wrong = measures.adjoint_defect((cotangent,), (move,), (found.conj(),), (tangent,))
    assert right < 1e-14 < 1e-4 < wrong
