"""CPU kernels for backwards against the same backward in library calls, which share no code with them."""

import torch

from strategies import linalg
from strategies.kernels.cpu import backward

DTYPES = [torch.float64, torch.float32, torch.complex128, torch.complex64]
SQUARE, ANY = [(5, 5)], [(5, 5), (7, 3), (3, 7)]
OPERATIONS = {
    "lu": (lambda A, B, s: linalg.lu_factor(A, strategy=s).LU, ANY),
    "pinv": (lambda A, B, s: linalg.pinv(A, strategy=s), ANY),
    "lstsq": (lambda A, B, s: linalg.lstsq(A, B, strategy=s).solution, ANY),
    "solve": (lambda A, B, s: linalg.solve(A, B, strategy=s), SQUARE),
    "inv": (lambda A, B, s: linalg.inv(A, strategy=s), SQUARE),
    "det": (lambda A, B, s: linalg.det(A, strategy=s), SQUARE),
}
CASES = [(name, *shape) for name, (_, shapes) in OPERATIONS.items() for shape in shapes]

# One matrix, less than a group, a group and a rest, two batch dimensions, the last matrix alone.
BATCHES = [(), (3,), (130,), (2, 3), (65,)]


def gradients(name, strategy, A, B):
    A, B = A.detach().requires_grad_(), B.detach().requires_grad_()
    result = OPERATIONS[name][0](A, B, strategy)
    generator = torch.Generator().manual_seed(1)
    cotangent = torch.randn(result.shape, dtype=result.dtype, generator=generator)
    inputs = (A, B) if name in ("lstsq", "solve") else (A,)
    return torch.autograd.grad(result, inputs, cotangent)


def require_same(name, A, B):
    ours, reference = (gradients(name, s, A, B) for s in ("batch_last", "triangular_solve"))
    for gradient, expected in zip(ours, reference, strict=True):
        error = torch.linalg.vector_norm(gradient - expected)
        scale = torch.linalg.vector_norm(expected)
        assert error <= 300 * torch.finfo(A.dtype).eps * scale, (name, A.shape, A.dtype)


def test_gradients_are_those_of_triangular_solve():
    for name, m, n in CASES:
        for batch in BATCHES:
            for dtype in DTYPES:
                A = torch.randn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)
                require_same(name, A, torch.randn(*batch, m, 2, dtype=dtype))


def test_a_matrix_has_the_same_gradient_alone_and_in_any_batch():
    for name, m, n in CASES:
        A, B = torch.randn(40, m, n), torch.randn(40, m, 1)
        together = gradients(name, "batch_last", A, B)[0]
        A = A.requires_grad_()
        result = OPERATIONS[name][0](A, B, "batch_last")
        cotangent = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
        alone = torch.autograd.grad(result[7], A, cotangent[7])[0][7]
        assert torch.equal(alone, together[7]), name


def test_strided_inputs_are_read_in_place():
    A = torch.randn(4, 6, 50, dtype=torch.float64).permute(2, 1, 0)
    ours = gradients("lu", "batch_last", A, A)[0]
    reference = gradients("lu", "triangular_solve", A.contiguous(), A)[0]
    torch.testing.assert_close(ours, reference, rtol=1e-6, atol=1e-6)


def test_signs_and_conjugates_that_torch_merely_notes_are_seen():
    z = torch.randn(3, 4, 4, dtype=torch.complex128)
    A = (torch.randn(3, 4, 4, dtype=torch.float64) + 3 * torch.eye(4)).requires_grad_()
    noted = z.conj().imag
    assert noted.is_neg()
    LU = linalg.lu_factor(A, strategy="batch_last").LU
    (gradient,) = torch.autograd.grad(LU, A, noted, retain_graph=True)
    (expected,) = torch.autograd.grad(LU, A, noted.clone().resolve_neg())
    assert torch.equal(gradient, expected)


def test_small_matrices_are_supported_and_large_or_empty_ones_are_not():
    for shape, is_supported in {
        (64, 64): True,
        (2, 200, 20): True,
        (65, 65): False,
        (0, 4, 4): False,
        (4, 0): False,
    }.items():
        LU = torch.empty(shape)
        assert backward.lu.supports(LU, LU, LU) is is_supported
    assert not backward.solve.supports(*[torch.empty(17, 17)] * 4)
    assert not backward.inv.supports(*[torch.empty(4, 4, device="meta")] * 3)
