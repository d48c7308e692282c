"""What the glue does with the tensors that strategies return."""

import pytest
import torch

from strategies import linalg
from strategies.builtin.triangular_solve import TriangularSolve


def _gradient_of(returned, dtype=torch.float64):
    """A gradient by a strategy that returns this of the cotangent, and the cotangent."""

    class Returning(TriangularSolve):
        name = "returning"

        def pinv_backward(self, saved, cotangent):
            return returned(cotangent)

    A = torch.randn(5, 3, dtype=dtype, requires_grad=True)
    X = linalg.pinv(A, strategy=Returning())
    cotangent = torch.randn_like(X)
    return torch.autograd.grad(X, A, cotangent)[0], cotangent


@pytest.mark.parametrize(
    "returned",
    [lambda G: G.mT, lambda G: G.mT[:]],
    ids=["a view", "a view of a view"],
)
def test_a_gradient_shares_no_memory_with_what_was_given(returned):
    gradient, cotangent = _gradient_of(returned)
    assert torch.equal(gradient, returned(cotangent))
    assert gradient.untyped_storage().data_ptr() != cotangent.untyped_storage().data_ptr()


def test_the_transpose_of_a_new_tensor_is_not_copied():
    made = []
    gradient, _ = _gradient_of(lambda G: made.append(2 * G) or made[0].mT)
    assert gradient.data_ptr() == made[0].data_ptr()


def test_a_gradient_is_not_conjugated_lazily():
    gradient, cotangent = _gradient_of(lambda G: (2 * G).mH, torch.complex128)
    assert not gradient.is_conj()
    assert torch.equal(gradient, 2 * cotangent.mH)
