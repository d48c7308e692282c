"""What of `batch_last` is no kernel: the choice of a way, wide input."""

import torch

from strategies import registry
from strategies.factors import LUFactors
from strategies.interface import Saved

strategy = registry.get("batch_last")


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
