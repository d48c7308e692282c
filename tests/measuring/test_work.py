"""Counted work: known flops of known operations."""

import pytest
import torch

from strategies.measuring import work_of

A = torch.eye(6, dtype=torch.float64)
B = torch.ones(6, 2, dtype=torch.float64)
TALL = torch.eye(9, 3, dtype=torch.float64)


@pytest.mark.parametrize(
    ("call", "flops"),
    [
        (lambda: A @ B, 2 * 6 * 6 * 2),
        (lambda: A + A, 36),
        (lambda: torch.addcmul(A, B[:, :1], A), 2 * 36),
        (lambda: A.mT[:2], 0),
        (lambda: A[0] @ A[1], 2 * 6),
        (lambda: A @ A[0], 2 * 36),
        (lambda: torch.baddbmm(A[None], A[None], A[None]), 2 * 216),
        (lambda: torch.linalg.solve_triangular(A, B, upper=True), 36 * 2),
        (lambda: torch.linalg.lu_factor(A), round(2 / 3 * 216)),
        (lambda: torch.linalg.solve(A, B), round(2 / 3 * 216 + 2 * 36 * 2)),
        (lambda: torch.linalg.inv(A), 2 * 216),
        (lambda: torch.linalg.cholesky(A), 216 // 3),
        (lambda: torch.linalg.qr(TALL, mode="r"), 2 * (2 * 9 * 9 - 18)),
        (lambda: torch.linalg.svd(TALL, full_matrices=False), 6 * 9 * 9 + 20 * 27),
        (lambda: torch.linalg.eigh(A), 9 * 216),
        (lambda: torch.linalg.lu_factor(A.expand(5, 6, 6)), 5 * round(2 / 3 * 216)),
        (lambda: A.to(torch.complex128) @ A.to(torch.complex128), 4 * 2 * 216),
        (lambda: A.clone().addmm_(A, A), 2 * 216),  # in place
    ],
)
def test_flops(call, flops):
    assert work_of(call).flops == flops


def test_a_backward_counts():
    a = A.clone().requires_grad_()
    out = a @ B
    work = work_of(lambda: torch.autograd.grad(out, a, B, retain_graph=True))
    assert work.flops == 2 * 6 * 6 * 2
    assert work.calls >= 1


def test_counts_repeat():
    first, second = (work_of(lambda: torch.linalg.pinv(TALL)) for _ in range(2))
    assert first == second
