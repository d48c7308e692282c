import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from strategies.accuracy import OPERATIONS, gallery, gradient, lu_gradient_at_factors
from strategies.accuracy.evaluation import Problem, certify, evaluate

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = {"square": (5, 5), "tall": (7, 4), "wide": (4, 7)}
SQUARE_ONLY = {"solve", "inv", "det", "slogdet"}


def _slogdet(a: Tensor) -> tuple[Tensor, ...]:
    sign, logabsdet = torch.linalg.slogdet(a)
    return (sign, logabsdet) if a.is_complex() else (logabsdet,)


FORWARD: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "lu_factor": lambda a: (torch.linalg.lu_factor(a)[0],),
    "lu": lambda a: tuple(torch.linalg.lu(a))[1:],
    "pinv": lambda a: (torch.linalg.pinv(a),),
    "lstsq": lambda a, b: (torch.linalg.lstsq(a, b, driver="gelsd").solution,),
    "solve": lambda a, b: (torch.linalg.solve(a, b),),
    "inv": lambda a: (torch.linalg.inv(a),),
    "det": lambda a: (torch.linalg.det(a),),
    "slogdet": _slogdet,
}


def _inputs(
    operation: str, shape: tuple[int, int], dtype: torch.dtype, batch: tuple[int, ...], seed: int
) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = [(*batch, *shape)]
    if operation in ("lstsq", "solve"):
        sizes.append((*batch, shape[0], 2))
    return [torch.randn(size, dtype=dtype, generator=generator) for size in sizes]


def _autograd(
    operation: str, inputs: list[Tensor]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    outputs = FORWARD[operation](*leaves)
    generator = torch.Generator().manual_seed(99)
    cotangents = tuple(torch.randn(o.shape, dtype=o.dtype, generator=generator) for o in outputs)
    return torch.autograd.grad(outputs, leaves, cotangents), cotangents


CASES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in SHAPES
    if kind == "square" or operation not in SQUARE_ONLY
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("batch", [(), (2, 2)])
@pytest.mark.parametrize(("operation", "kind"), CASES)
def test_agrees_with_autograd(
    operation: str, kind: str, batch: tuple[int, ...], dtype: torch.dtype
) -> None:
    inputs = _inputs(operation, SHAPES[kind], dtype, batch, 1)
    computed, cotangents = _autograd(operation, inputs)
    assert gradient(operation, inputs, cotangents).relative_error(computed) < 1e-11


def _random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    operation = ["lu_factor", "lu_at_factors", "pinv", "lstsq", "solve", "inv", "det", "slogdet"][
        seed % 8
    ]
    m, n = (int(size) for size in rng.integers(1, 9, 2))
    if operation in SQUARE_ONLY:
        n = m
    dtype = [np.float32, np.float64, np.complex64, np.complex128][seed // 8 % 4]

    def draw(*shape: int) -> np.ndarray:
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)
        imaginary = rng.standard_normal(shape) * np.issubdtype(dtype, np.complexfloating)
        return np.asarray(values + 1j * imaginary if imaginary.any() else values, dtype=dtype)

    cotangent_shapes = {"pinv": (n, m), "lstsq": (n, 2), "det": (), "slogdet": ()}
    has_rhs = operation in ("lstsq", "solve")
    cotangents = (draw(*cotangent_shapes.get(operation, (m, 2) if has_rhs else (m, n))),)
    if operation == "slogdet":
        cotangents = (draw(), *cotangents)
    return Problem(
        operation,
        (draw(m, n), draw(m, 2)) if has_rhs else (draw(m, n),),
        cotangents,
        min(m, n),
        rng.permutation(m) if operation.startswith("lu") else None,
    )


@pytest.mark.parametrize("seed", range(200))
def test_right_to_its_certificate_at_double_the_precision(seed: int) -> None:
    problem = _random_problem(seed)
    certified = certify(problem)
    better = evaluate(problem, 2 * certified.bits)
    roundoff = np.finfo(problem.inputs[0].dtype).eps / 2
    assert certified.radius <= 2.0**-20 * roundoff
    for part, other in zip(certified.parts, better.parts, strict=True):
        assert part.exponent == other.exponent
        difference = np.linalg.norm((part.high - other.high) + (part.low - other.low))
        assert difference <= (certified.radius + better.radius) * np.linalg.norm(other.high)


def _exactly_deficient(
    shape: tuple[int, int], rank: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rank)

    def integers(*size: int) -> Tensor:
        values = torch.randint(-3, 4, size, generator=generator).to(dtype)
        if dtype.is_complex:
            values = values + 1j * torch.randint(-3, 4, size, generator=generator)
        return values + 4 * torch.eye(*size, dtype=dtype)

    return integers(shape[0], rank), integers(rank, shape[1])


def _canonical_lu(a: Tensor, rank: int, order: Tensor) -> Tensor:
    """Eliminate `rank` columns without looking for pivots; the rest of the factors is zero."""
    rest, packed = a[order], torch.zeros_like(a)
    for i in range(rank):
        packed[i, i:] = rest[i, i:]
        packed[i + 1 :, i] = rest[i + 1 :, i] / rest[i, i]
        rest = rest - torch.outer(rest[:, i] / rest[i, i], rest[i])
    return packed


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("operation", ["pinv", "lstsq", "lu_factor"])
def test_deficient_rank_agrees_with_differences_of_the_factors(
    operation: str, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    rank, step = 2, 1e-5
    left, right = _exactly_deficient(shape, rank, dtype)
    a = left @ right
    b = torch.randn(shape[0], 2, dtype=dtype, generator=torch.Generator().manual_seed(5))
    packed, pivots = torch.linalg.lu_factor_ex(a)[:2]
    permutation = torch.lu_unpack(packed, torch.cat([pivots[:rank], _in_place(pivots)[rank:]]))[0]
    order = permutation.real.argmax(0)

    def value(matrix: Tensor) -> Tensor:
        if operation == "lu_factor":
            return _canonical_lu(matrix, rank, order)
        inverse = torch.linalg.pinv(matrix, rtol=1e-9)
        return inverse if operation == "pinv" else inverse @ b

    cotangent = torch.randn_like(value(a))
    inputs = (a, b) if operation == "lstsq" else (a,)
    exact = gradient(operation, inputs, (cotangent,), rank=rank).gradients[0]
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        left_move = torch.randn(left.shape, dtype=dtype, generator=generator)
        right_move = torch.randn(right.shape, dtype=dtype, generator=generator)
        ahead = value((left + step * left_move) @ (right + step * right_move))
        behind = value((left - step * left_move) @ (right - step * right_move))
        expected = (cotangent.conj() * (ahead - behind)).real.sum() / (2 * step)
        move = left_move @ right + left @ right_move
        torch.testing.assert_close((exact.conj() * move).real.sum(), expected, rtol=1e-6, atol=1e-6)


def _in_place(pivots: Tensor) -> Tensor:
    return torch.arange(1, len(pivots) + 1, dtype=pivots.dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_det_at_corank_one_is_the_matrix_of_cofactors(size: int, dtype: torch.dtype) -> None:
    a = torch.zeros(1, 1, dtype=dtype)
    if size > 1:
        left, right = _exactly_deficient((size, size), size - 1, dtype)
        a = left @ right
    cofactors = torch.empty_like(a)
    for i in range(size):
        for j in range(size):
            rows = [row for row in range(size) if row != i]
            columns = [column for column in range(size) if column != j]
            cofactors[i, j] = (-1) ** (i + j) * torch.linalg.det(a[rows][:, columns])
    cotangent = torch.tensor(2.0, dtype=dtype)
    exact = gradient("det", (a,), (cotangent,), rank=size - 1)
    assert exact.relative_error((2 * cofactors.conj(),)) < 1e-12


def test_det_at_corank_two_is_flat() -> None:
    exact = gradient("det", (torch.ones(3, 3),), (torch.tensor(1.0),), rank=1)
    assert not exact.gradients[0].any()


@pytest.mark.parametrize("operation", ["pinv", "lu_factor"])
def test_rank_zero_has_no_gradient(operation: str) -> None:
    exact = gradient(operation, (torch.zeros(3, 3),), (torch.ones(3, 3),), rank=0)
    assert not exact.gradients[0].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_factors_that_are_exact_give_the_gradient_at_the_matrix(
    shape: tuple[int, int], dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    packed = torch.randint(1, 4, shape, generator=generator).to(dtype)
    pivots = _in_place(torch.empty(min(shape), dtype=torch.int32))
    cotangent = torch.randn(shape, dtype=dtype, generator=generator)
    k = min(shape)
    lower = packed[:, :k].tril(-1) + torch.eye(shape[0], k, dtype=dtype)
    matrix = lower @ packed[:k].triu()
    at_factors = lu_gradient_at_factors(packed, pivots, cotangent)
    at_matrix = gradient("lu_factor", (matrix,), (cotangent,), pivots=pivots)
    assert at_factors.relative_error(at_matrix.gradients) < 1e-15


def test_singular_stored_factors_are_refused() -> None:
    packed = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    with pytest.raises(ValueError, match="zero on its diagonal"):
        lu_gradient_at_factors(packed, torch.tensor([1, 2]), torch.ones(2, 2))


def test_precision_is_doubled_until_it_suffices() -> None:
    matrix = gallery.make("random_condition_max", (16, 16), torch.float64).matrix
    exact = gradient("pinv", (matrix,), (torch.ones_like(matrix),))
    assert exact.bits == 512
    assert exact.radius < 2.0**-73


def test_pivots_of_the_tested_factorization_are_followed() -> None:
    matrix, cotangent = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2)
    in_place = torch.tensor([1, 2], dtype=torch.int32)
    exact = gradient("lu_factor", (matrix,), (cotangent,), pivots=in_place)
    packed = lu_gradient_at_factors(torch.tensor([[1.0, 2.0], [3.0, -2.0]]), in_place, cotangent)
    assert packed.relative_error(exact.gradients) < 1e-15
    assert exact.relative_error(gradient("lu_factor", (matrix,), (cotangent,)).gradients) > 0.1


def test_condition_beyond_the_dtype_is_no_obstacle() -> None:
    matrix = torch.tensor([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]], dtype=torch.float64)
    exact = gradient("inv", (matrix,), (torch.eye(2, dtype=torch.float64),))
    inverse = 2.0**52 * torch.tensor([[1.0 + 2.0**-52, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert exact.relative_error((-(inverse @ inverse),)) < 2.0**-52


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**1000])
def test_gradients_out_of_range_are_still_known(scale: float) -> None:
    matrix = torch.eye(2, dtype=torch.float64) * scale
    exact = gradient("inv", (matrix,), (torch.eye(2, dtype=torch.float64),))
    part = exact.parts[0]
    assert part.high[0, 0] * 2.0 ** (float(part.exponent) + 2 * np.log2(scale)) == -1


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("operation", ["lu_factor", "pinv"])
def test_empty_matrices(operation: str, shape: tuple[int, int]) -> None:
    cotangent = torch.ones(shape if operation == "lu_factor" else shape[::-1])
    exact = gradient(operation, (torch.ones(shape),), (cotangent,))
    assert exact.gradients[0].shape == shape
    assert exact.relative_error((torch.ones(shape),)) == 0


def test_empty_batch() -> None:
    exact = gradient("pinv", (torch.ones(0, 3, 2),), (torch.ones(0, 2, 3),))
    assert exact.gradients[0].shape == (0, 3, 2)


def test_vector_right_hand_side_keeps_its_shape() -> None:
    matrix, rhs = torch.eye(3).expand(2, 3, 3), torch.ones(2, 3)
    exact = gradient("solve", (matrix, rhs), (torch.ones(2, 3),))
    assert [g.shape for g in exact.gradients] == [(2, 3, 3), (2, 3)]


@pytest.mark.parametrize("operation", ["pinv", "inv", "slogdet"])
def test_undeclared_singularity_is_named(operation: str) -> None:
    cotangent = torch.tensor(1.0) if operation == "slogdet" else torch.ones(3, 3)
    with pytest.raises(ValueError, match="rank 1, not 3"):
        gradient(operation, (torch.ones(3, 3),), (cotangent,))


@pytest.mark.parametrize("operation", ["pinv", "lu_factor"])
@pytest.mark.parametrize("declared", [1, 2])
def test_wrong_rank_is_refused(operation: str, declared: int) -> None:
    matrix = torch.eye(3) if declared == 2 else torch.diag(torch.tensor([1.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match="rank"):
        gradient(operation, (matrix,), (torch.ones(3, 3),), rank=declared)


def test_lu_without_independent_leading_columns_is_refused() -> None:
    matrix = torch.tensor([[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="leading 1×1 block"):
        gradient("lu_factor", (matrix,), (torch.ones(2, 2),), rank=1)


@pytest.mark.parametrize(
    ("operation", "inputs", "cotangents", "message"),
    [
        ("qr", (torch.eye(2),), (torch.eye(2),), "unknown operation 'qr'"),
        ("pinv", (torch.ones(2, 3),), (torch.ones(2, 3),), r"\[\(3, 2\)\], got \[\(2, 3\)\]"),
        ("inv", (torch.ones(2, 3),), (torch.ones(3, 2),), "square"),
        ("solve", (torch.eye(2),), (torch.ones(2, 1),), "2 inputs, got 1"),
        ("inv", (torch.full((1, 1), torch.nan),), (torch.ones(1, 1),), "finite"),
        ("inv", (torch.eye(2),), (torch.eye(2, dtype=torch.float64),), "float32"),
        ("inv", (torch.ones(2),), (torch.ones(2),), "two dimensions"),
    ],
)
def test_what_does_not_fit_is_refused(
    operation: str, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        gradient(operation, inputs, cotangents)


def test_missing_flint_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [name for name in sys.modules if name.startswith("strategies.accuracy.e")]
    for name in [*loaded, "strategies.exact.balls"]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ImportError, match=r"backward-strategies\[accuracy\]"):
        gradient("inv", (torch.eye(2),), (torch.eye(2),))
