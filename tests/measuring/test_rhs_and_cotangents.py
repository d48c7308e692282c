"""Hard right-hand sides and cotangents."""

import pytest
import torch

from strategies.measuring import Case, forward
from strategies.measuring.rhs_and_cotangents import COTANGENTS, RIGHT_SIDES


def side(name, A, columns=2):
    return RIGHT_SIDES[name](A, columns, torch.Generator().manual_seed(0))


@pytest.fixture(name="A", params=[torch.float64, torch.complex128], ids=str)
def matrices(request):
    return torch.randn(3, 7, 4, dtype=request.param, generator=torch.Generator().manual_seed(1))


def residual(A, B):
    Q = torch.linalg.qr(A).Q
    return float(torch.linalg.norm(B - Q @ (Q.mH @ B)) / torch.linalg.norm(B))


@pytest.mark.parametrize("name", RIGHT_SIDES)
def test_each_has_the_shape_and_dtype_of_a_right_hand_side(A, name):
    for matrix in (A, A.mH, A[0], torch.zeros_like(A)):
        found = side(name, matrix)
        assert found.shape == (*matrix.shape[:-1], 2)
        assert found.dtype == matrix.dtype


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("image", 0, 1e-14), ("gram", 0, 1e-14), ("near_image", 1e-8, 1e-5), ("complement", 1, 1)],
)
def test_how_much_is_outside_of_the_range(A, name, least, most):
    assert least * (1 - 1e-9) <= residual(A, side(name, A)) <= most * (1 + 1e-9)


def test_singular_vectors_are_amplified_most_and_least(A):
    values = torch.linalg.svdvals(A)
    for name, value in (("first", values[:, 0]), ("last", values[:, -1])):
        vector = side(f"{name}_singular_vector", A, 1)
        assert torch.allclose(torch.linalg.vector_norm(A.mH @ vector, dim=(-2, -1)), value)


def test_cotangents_are_right_hand_sides_of_the_adjoint():
    for operation in ("pinv", "lstsq", "lu_factor"):
        for name in COTANGENTS:
            case = Case.parse(f"{operation} 3x7x4 G={name} seed=2")
            outputs = forward(case, "native")
            (found,) = case.cotangents(outputs)
            assert found.shape == outputs[0].shape
            assert found.isfinite().all()
    case = Case.parse("lstsq 7x4 G=gram")
    (G,) = case.cotangents(forward(case, "native"))
    A = case.inputs()[0].detach()
    # AᴴA w lies along the first right singular vectors.
    assert residual(torch.linalg.svd(A).Vh.mH[:, :3], G) < 0.2


def test_a_scale_multiplies_a_b_and_matrix_cotangents():
    plain, scaled = (Case.parse(f"lstsq 5x3 B=image G=ones{s}") for s in ("", " scale=2^-1000"))
    for one, other in zip(plain.inputs(), scaled.inputs(), strict=True):
        assert torch.equal(one * 2.0**-500 * 2.0**-500, other)
    outputs = forward(plain, "native")
    assert torch.equal(plain.cotangents(outputs)[0] * 2.0**-1000, scaled.cotangents(outputs)[0])
    scaled = Case.parse("det 3x3 scale=2^5")
    outputs = forward(scaled, "native")
    assert torch.equal(*(c.cotangents(outputs)[0] for c in (scaled, Case.parse("det 3x3"))))
