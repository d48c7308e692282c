"""Compiled kernels against the same backward in batched library calls, which share no code with them."""

import pytest
import torch

from strategies import linalg

# More than 1024 entries are gone over row by row.
TALL_LAST = [(5, 5), (7, 3), (3, 7), (103, 10)]

OPERATIONS = {
    "lu": (lambda A, B, s: linalg.lu_factor(A, strategy=s).LU, [(5, 5), (7, 3), (3, 7)]),
    "pinv": (lambda A, B, s: linalg.pinv(A, strategy=s), [(5, 5), (7, 3), (3, 7)]),
    "lstsq": (lambda A, B, s: linalg.lstsq(A, B, strategy=s).solution, TALL_LAST),
    "solve": (lambda A, B, s: linalg.solve(A, B, strategy=s), [(5, 5)]),
    "inv": (lambda A, B, s: linalg.inv(A, strategy=s), [(5, 5)]),
    "det": (lambda A, B, s: linalg.det(A, strategy=s), [(5, 5)]),
}
CASES = [(name, shape) for name, (_, shapes) in OPERATIONS.items() for shape in shapes]

# One matrix, less than a group, a group and a rest, two batch dimensions, the last matrix alone.
BATCHES = [(), (3,), (130,), (2, 3), (65,)]


def _gradients(name, strategy, A, B):
    A, B = A.detach().requires_grad_(), B.detach().requires_grad_()
    result = OPERATIONS[name][0](A, B, strategy)
    generator = torch.Generator().manual_seed(1)
    cotangent = torch.randn(result.shape, dtype=result.dtype, generator=generator)
    inputs = (A, B) if name in ("lstsq", "solve") else (A,)
    return torch.autograd.grad(result, inputs, cotangent)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.complex64])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_gradients_are_those_of_triangular_solve(name, shape, batch, dtype):
    m, n = shape
    A = torch.randn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)
    B = torch.randn(*batch, m, 2, dtype=dtype)
    ours = _gradients(name, "batch_last", A, B)
    reference = _gradients(name, "triangular_solve", A, B)
    for gradient, expected in zip(ours, reference, strict=True):
        error = torch.linalg.vector_norm(gradient - expected)
        scale = torch.linalg.vector_norm(expected)
        assert error <= 200 * torch.finfo(dtype).eps * scale


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_matrix_has_the_same_gradient_alone_and_in_any_batch(name, shape):
    m, n = shape
    A, B = torch.randn(40, m, n), torch.randn(40, m, 1)
    together = _gradients(name, "batch_last", A, B)[0]
    generator = torch.Generator().manual_seed(1)
    A = A.requires_grad_()
    result = OPERATIONS[name][0](A, B, "batch_last")
    cotangent = torch.randn(result.shape, generator=generator)
    alone = torch.autograd.grad(result[7], A, cotangent[7])[0][7]
    assert torch.equal(alone, together[7])


@pytest.mark.parametrize("k", [1, 4, 5])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_tall_least_squares_of_any_strides_and_number_of_right_hand_sides(k, is_transposed):
    A = torch.randn(60, 200, dtype=torch.float64).mT if is_transposed else torch.randn(200, 60)
    B = torch.randn(200, 2 * k, dtype=A.dtype)[:, ::2]
    ours, reference = (_gradients("lstsq", s, A, B) for s in ("batch_last", "svd_truncated_pinv"))
    for gradient, expected in zip(ours, reference, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)


def test_strided_inputs_are_read_in_place():
    A = torch.randn(4, 6, 50).permute(2, 1, 0)
    ours = _gradients("lu", "batch_last", A, A)[0]
    reference = _gradients("lu", "triangular_solve", A.contiguous(), A)[0]
    torch.testing.assert_close(ours, reference, rtol=1e-3, atol=1e-3)


def test_signs_and_conjugates_that_torch_only_notes_are_seen():
    z = torch.randn(3, 4, 4, dtype=torch.complex128)
    A = (torch.randn(3, 4, 4, dtype=torch.float64) + 3 * torch.eye(4)).requires_grad_()
    noted = z.conj().imag
    assert noted.is_neg()
    LU = linalg.lu_factor(A, strategy="batch_last").LU
    (gradient,) = torch.autograd.grad(LU, A, noted, retain_graph=True)
    (expected,) = torch.autograd.grad(LU, A, noted.clone().resolve_neg())
    assert torch.equal(gradient, expected)
