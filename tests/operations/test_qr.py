"""QR in every mode and shape: gradients against finite differences, and where there are none."""

import functools
import itertools

import pytest
import torch
from comparison import drawn, require_derivatives, with_gradients
from operations import ALL_DTYPES, each_dtype
from torch.autograd import gradcheck

import strategies
from strategies import linalg

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 2), (1, 1)]
EMPTY = [(0, 3), (3, 0), (0, 4, 2)]
MODES = ["reduced", "complete", "r"]
TRIANGLES = ["triangular_solve", "explicit_inverse", "qr_pinv", "svd_truncated_pinv", "fused"]
each_mode = pytest.mark.parametrize("mode", MODES)


def call(mode, strategy="triangular_solve"):
    """The outputs that are there."""
    return lambda A: tuple(linalg.qr(A, mode, strategy=strategy))[mode == "r" :]


@each_mode
@each_dtype
@pytest.mark.parametrize("strategy", ["triangular_solve", "auto"])
def test_derivatives_of_both_orders_in_both_modes(strategy, mode, dtype):
    for shape in SHAPES + EMPTY:
        require_derivatives(call(mode, strategy), (drawn(*shape, dtype=dtype).requires_grad_(),))


@pytest.mark.parametrize("strategy", TRIANGLES)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch_where_it_has_them(strategy, dtype):
    # Sizes of one block, of several, and of a last block that is smaller.
    for shape, mode in itertools.product(
        [*SHAPES, *EMPTY, (150, 150), (300, 140), (140, 300), (2, 270, 260), (4, 9, 9)], MODES[:2]
    ):
        if mode == "complete" and shape[-2] > shape[-1]:
            continue
        A = drawn(*shape, dtype=dtype).requires_grad_()
        found, due = (
            with_gradients(lambda A, qr=qr, mode=mode: qr(A, mode), A)
            for qr in (functools.partial(linalg.qr, strategy=strategy), torch.linalg.qr)
        )
        limit = 0 if strategy != "fused" else 100 * torch.finfo(dtype).eps * len(A)
        torch.testing.assert_close(found[:2], due[:2], rtol=limit, atol=limit)
        tolerance = 10 * torch.finfo(dtype).eps ** 0.5
        assert (found[2] - due[2]).norm() <= tolerance * due[2].norm()


@each_dtype
def test_the_complete_basis_of_several_blocks_against_finite_differences(dtype):
    A = drawn(200, 140, dtype=dtype).requires_grad_()
    assert gradcheck(call("complete"), A, fast_mode=True, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "column"), [*itertools.product([(4, 4), (6, 4), (4, 6)], [0, 2]), ((6, 4), 3)]
)
def test_dependent_columns_are_refused_in_the_backward_only(shape, column):
    A = drawn(2, *shape)
    A[1, :, column] = A[1, :, :column].sum(-1)
    A.requires_grad_()
    Q, R = linalg.qr(A, strategy="triangular_solve")
    with pytest.raises(torch.linalg.LinAlgError, match=r"backward of qr.*element 1\).*dependent"):
        (Q.sum() + R.sum()).backward()


def test_bad_scaling_of_columns_is_no_dependence():
    A = drawn(6, 4) * torch.tensor([1e-30, 1.0, 1e30, 1e-10], dtype=torch.float64)
    A.requires_grad_()
    cotangents = drawn(6, 4, seed=1), torch.zeros(4, 4, dtype=torch.float64)
    (found,) = torch.autograd.grad(linalg.qr(A, strategy="triangular_solve"), A, cotangents)
    (due,) = torch.autograd.grad(torch.linalg.qr(A), A, cotangents)
    torch.testing.assert_close(found, due, rtol=1e-9, atol=0)


@pytest.mark.parametrize("strategy", ["auto", "triangular_solve", "explicit_inverse"])
@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-4])
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (9, 3, 3), (40, 40), (1, 3)])
def test_the_last_column_of_a_square_basis_may_be_dependent(shape, distance, strategy):
    A = drawn(*shape)
    last = shape[-2] - 1
    A[..., last] = A[..., :last].sum(-1) + distance * A[..., last]
    size = 1e-10 if last == 0 else 1.0  # there is no other column
    leaf, W = (A * size).requires_grad_(), drawn(*shape, seed=1)

    def derivatives(qr):
        Q, R = qr(leaf)
        loss = 3.3 * Q.mul(W[..., : last + 1]).sum() + (R * W / size).sum()
        (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
        return first, torch.autograd.grad(first, leaf, W * size)[0]

    def of_wide(A):  # where PyTorch does not divide by the last pivot
        Q, R = torch.linalg.qr(torch.nn.functional.pad(A, (0, 1)))
        return Q, R[..., :-1]

    found = derivatives(functools.partial(linalg.qr, strategy=strategy))
    torch.testing.assert_close(found, derivatives(of_wide), rtol=1e-9, atol=1e-9)


def test_wide_matrices_need_their_first_columns_only():
    A = drawn(3, 6)
    A[:, 4] = A[:, 0]
    assert gradcheck(call("reduced"), (A.requires_grad_(),))


def test_the_complement_has_no_gradient_where_a_column_needs_no_reflection():
    A = torch.cat([drawn(3, 3).triu(), torch.zeros(2, 3)]).requires_grad_()
    Q, R = linalg.qr(A, "complete", strategy="triangular_solve")
    with pytest.raises(torch.linalg.LinAlgError, match="reflectors jump"):
        torch.autograd.grad(Q[:, 3].sum(), A, retain_graph=True)
    (gradient,) = torch.autograd.grad(Q[:, :3].sum() + R.sum(), A)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("strategy", strategies.available())
@each_mode
def test_without_a_gradient_values_are_torchs(mode, strategy):
    A = drawn(5, 3)
    found, due = linalg.qr(A, mode, strategy=strategy), torch.linalg.qr(A, mode)
    torch.testing.assert_close(tuple(found), tuple(due))


@pytest.mark.parametrize("power", [-250, 250])
@pytest.mark.parametrize("strategy", ["auto", "qr_pinv"])
def test_columns_whose_squares_are_out_of_range_are_not_dependent(strategy, power):
    A = drawn(5, 3)
    gradients = []
    for scale in (1.0, 2.0 ** (2 * power)):
        at = (A * scale).requires_grad_()
        loss = linalg.qr(at, strategy=strategy).Q.sin().sum()
        gradients.append(torch.autograd.grad(loss, at, create_graph=True)[0] * scale)
    torch.testing.assert_close(*gradients)


def test_minus_zero_at_the_head_of_a_column_is_zero():
    A = -torch.tensor([[0.0, 1.0], [1.0, 1.0]]).repeat(20, 1, 1)
    assert torch.equal(linalg.qr(A).R, linalg.qr(A + 0.0).R)
