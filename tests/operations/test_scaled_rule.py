"""Results and gradients at the ends of the exponent range, and of what is not finite."""

import pytest
import torch

import strategies
from strategies import linalg
from strategies.accuracy.stability import references
from strategies.operations.scaled_rule import is_in_safe_range, times_power_of_two
from strategies.testing.global_state import preserved
from tests.linalg.operations import each_operation, function, inputs_of

STABLE = ("triangular_solve", "qr_pinv", "batch_last")


def test_least_squares_are_stable_wherever_the_gradient_is_representable():
    for dtype, most in ((torch.float64, 900), (torch.float32, 100)):
        for a, b, g in ((most, most, 0), (-most // 2, -most, 0), (0, 0, -most), (0, most, -most)):
            A = torch.randn(7, 3, dtype=dtype) * 2.0**a
            B, G = torch.randn(7, 2, dtype=dtype) * 2.0**b, torch.randn(3, 2, dtype=dtype) * 2.0**g
            (exact,), exact_gradients = references("lstsq", (A, B), (G,))
            for strategy in STABLE:
                inputs = A.clone().requires_grad_(), B.clone().requires_grad_()
                X = linalg.lstsq(*inputs, strategy=strategy).solution
                assert max(exact.ratio(X.detach())) < 100
                gradients = torch.autograd.grad(X, inputs, G)
                for computed, each in zip(gradients, exact_gradients, strict=True):
                    assert max(each.ratio(computed)) < 100


def test_each_matrix_of_a_batch_has_its_own_scale():
    A, G = torch.randn(4, 6, 3, dtype=torch.float64), torch.randn(4, 3, 6, dtype=torch.float64)
    powers = torch.tensor([-400, 0, 400, -1])
    for strategy in (*STABLE, "svd_truncated_pinv"):
        near, far = A.clone().requires_grad_(), times_power_of_two(A, powers).requires_grad_()
        expected, found = (linalg.pinv(each, strategy=strategy) for each in (near, far))
        torch.testing.assert_close(times_power_of_two(found, powers), expected)
        expected.backward(G)
        found.backward(G)
        torch.testing.assert_close(times_power_of_two(far.grad, 2 * powers), near.grad)


def test_an_absolute_tolerance_is_meant_at_the_scale_of_the_input():
    A = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64)) * 1e-200
    for strategy in ("qr_pinv", "svd_truncated_pinv"):
        found = linalg.pinv(A, atol=1e-202, strategy=strategy)
        torch.testing.assert_close(found * 1e-200, torch.diag(torch.tensor([1.0, 0.0])).double())


def test_denormal_matrices_are_not_singular():
    A = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64) * 2.0**-1060
    B = A @ torch.ones(2, 1, dtype=torch.float64)
    for strategy in STABLE:
        torch.testing.assert_close(
            linalg.solve(A, B, strategy=strategy), torch.ones(2, 1, dtype=torch.float64)
        )


def test_whether_norms_are_in_safe_range_does_not_depend_on_the_layout():
    factors = (torch.float32, 1e30), (torch.float32, 1e-30), (torch.complex128, 1e90)
    for dtype, factor in (*factors, (torch.complex128, 1e-90)):
        matrices = torch.randn(2, 3, 4, 5, dtype=dtype)
        far = matrices.clone()
        far[1, 2] *= factor
        for each, expected in ((matrices, True), (far, False)):
            spread = each.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1)
            for layout in (each, each.mT.contiguous().mT, spread, each.conj()):
                assert is_in_safe_range(layout) is expected


@pytest.mark.parametrize("exponent", [-45, 45])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_cotangents_far_from_one_scale_the_gradients_to_the_bit(batch, exponent):
    A = torch.randn(*batch, 4, 4).requires_grad_()
    X = linalg.inv(A, strategy="triangular_solve")
    G = torch.randn(X.shape)
    (expected,) = torch.autograd.grad(X, A, G, retain_graph=True)
    (found,) = torch.autograd.grad(X, A, G * 2.0**exponent)
    assert torch.equal(found, expected * 2.0**exponent)


@pytest.mark.parametrize("strategy", strategies.available())
def test_a_cotangent_with_nan_reaches_no_other_matrix(strategy):
    """Memory that nobody has written is NaN here, as it may be anywhere."""
    A = (torch.randn(3, 5, 5) + 4 * torch.eye(5)).requires_grad_()
    cotangent = torch.randn(3, 5, 5)
    cotangent[1] = torch.nan
    with preserved():
        torch.use_deterministic_algorithms(True)
        result = strategies.linalg.inv(A, strategy=strategy)
        (gradient,) = torch.autograd.grad(result, A, cotangent)
    assert gradient[::2].isfinite().all()


@each_operation
@pytest.mark.parametrize("of_directions", [-90, 0, 90])
@pytest.mark.parametrize("of_cotangents", [-90, 90])
def test_a_second_derivative_by_cotangents_is_the_same_however_far_they_are(
    of_cotangents, of_directions, operation
):
    """It is linear in directions, and cotangents are not in it; the last of the batch are zero."""
    inputs = inputs_of(operation, (4, 4), (3,), torch.float32)
    outputs = function(operation, "auto")(*inputs)
    directions = [torch.randn_like(each) for each in inputs]

    def by_cotangents(cotangents, directions):
        leaves = [each.requires_grad_() for each in cotangents]
        gradients = torch.autograd.grad(outputs, inputs, leaves, create_graph=True)
        return torch.autograd.grad(gradients, leaves, directions, allow_unused=True)

    far = [torch.randn_like(each) * 2.0**of_cotangents for each in outputs]
    for each in far:
        each[-1] = 0
    moved = [each * 2.0**of_directions for each in directions]
    expected = by_cotangents([torch.ones_like(each) for each in outputs], directions)
    for found, each in zip(by_cotangents(far, moved), expected, strict=True):
        assert (found is None) == (each is None)
        if each is not None:
            torch.testing.assert_close(found * 2.0**-of_directions, each)


@pytest.mark.parametrize(
    "scales", [(1e10, 1e-24, 1e30), (1e10, 1e-28, 1e35), (1e-8, 1e24, 1e-30), (1e3, 1e-33, 1e20)]
)
def test_a_second_gradient_of_inv_outlives_a_first_beyond_the_range(scales):
    A, G, D = (
        torch.randn(3, 3, dtype=torch.float64) * scale for scale in (scales[0] / 3, *scales[1:])
    )
    A += scales[0] * torch.eye(3)

    def second(inv, dtype):
        def gradient(A):
            return torch.func.vjp(inv, A)[1](G.to(dtype))[0]

        return torch.func.vjp(gradient, A.to(dtype))[1](D.to(dtype))[0].double()

    due = second(torch.linalg.inv, torch.float64)
    found = second(linalg.inv, torch.float32)
    torch.testing.assert_close(found, due, rtol=0, atol=1e-5 * due.abs().max().item())
