"""What of `batch_last` is no kernel: elementwise operations of torch, the choice of a way, wide input."""

import torch

from strategies import registry
from strategies.builtin.batch_last import _batch_last, _reverse
from strategies.factors import LUFactors, Triangular
from strategies.formulas import lu as formula
from strategies.interface import Saved

strategy = registry.get("batch_last")


def test_the_reverse_in_elementwise_operations_is_that_of_the_formula():
    for dtype in (torch.float64, torch.complex128):
        for m, n in ((1, 1), (5, 5), (7, 3), (3, 7)):
            A, cotangent = (torch.randn(20, m, n, dtype=dtype) for _ in range(2))
            LU = torch.linalg.lu_factor(A).LU
            before = cotangent.clone()
            rows = _reverse(_batch_last(LU), _batch_last(cotangent)).permute(2, 0, 1)
            expected = formula.backward(Triangular, LU, cotangent)
            error = torch.linalg.vector_norm(rows - expected)
            assert error <= 1e-11 * torch.linalg.vector_norm(expected)
            assert torch.equal(cotangent, before)


def test_a_wide_pinv_is_the_adjoint_of_a_tall_one():
    A, cotangent = torch.randn(30, 3, 5), torch.randn(30, 5, 3)
    gradients = []
    for matrix, bar in ((A, cotangent), (A.mH, cotangent.mH)):
        result, inverse = strategy.pinv_forward(matrix)
        gradients.append(strategy.pinv_backward(Saved(inverse, (matrix,), (result,)), bar))
    assert torch.equal(gradients[0], gradients[1].mH)


def test_what_no_kernel_takes_is_left_to_the_formula():
    A = torch.randn(100, 100) + 20 * torch.eye(100)
    saved = Saved(LUFactors(*torch.linalg.lu_factor(A)), (A, A), (A,))
    assert strategy.inv_forward(A) is NotImplemented
    assert strategy.solve_forward(A, A) is NotImplemented
    assert strategy.inv_backward(saved, A) is NotImplemented
    assert strategy.lstsq_backward(saved, A) is NotImplemented
    assert strategy.solve_backward(saved, A, need_matrix=False) is NotImplemented
