"""What the glue does with the tensors that strategies return."""

import functools

import pytest
import torch
from comparison import require_alike
from torch.autograd import gradcheck

import strategies
from strategies import linalg
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense
from tests.autograd.recorded import Recorded


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
    "returned", [lambda G: G.mT, lambda G: G.mT[:]], ids=["a view", "a view of a view"]
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


class Refining(strategies.Strategy):
    """Keeps the matrix itself, which it reads to refine what it has solved."""

    name = "refining"
    summary = "an inverse, with a step of refinement"
    requires_full_rank = True

    def factor_tall(self, matrix, *, rtol, atol):
        rank = torch.full(matrix.shape[:-2], matrix.shape[-1])
        inverse = torch.linalg.pinv(matrix)
        return Refined(matrix, inverse, rank, full_column_rank=True, full_row_rank=True)


class Refined(Dense):
    def apply(self, b):
        return self.solve(b)

    def solve(self, c):
        found = self.inverse @ c
        return found + self.inverse @ (c - self.matrix @ found)

    def solve_adjoint(self, x):
        found = self.inverse.mH @ x
        return found + self.inverse.mH @ (x - self.matrix.mH @ found)


@pytest.mark.parametrize("operation", ["inv", "solve"])
def test_a_factor_may_be_an_input_of_which_no_formula_reads_more_than_the_shape(operation):
    inputs = [torch.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)]
    inputs += [torch.ones(2, 1, dtype=torch.float64, requires_grad=True)] * (operation == "solve")
    ours = functools.partial(getattr(linalg, operation), strategy=Refining())
    require_alike(ours, getattr(torch.linalg, operation), *inputs)


def test_the_tangent_of_a_gradient_is_one_pass_of_forward_mode():
    A = torch.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=torch.float64)

    def directional(inv):
        gradient = torch.func.grad(lambda A: inv(A).square().sum())
        return torch.func.jvp(gradient, (A,), (torch.ones_like(A),))

    with Recorded() as recorded:
        found = directional(lambda A: linalg.inv(A, strategy="triangular_solve"))
    torch.testing.assert_close(found, directional(torch.linalg.inv))
    # Two of the explicit gradient, of each of which a tangent takes two, and two of the inverse's tangent.
    assert recorded.count("mm") + recorded.count("bmm") <= 8


def test_a_second_gradient_of_some_inputs_and_a_third_of_all():
    A = torch.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    B = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)

    def derivatives(solve):
        (first,) = torch.autograd.grad(solve(A, B).pow(3).sum(), B, create_graph=True)
        second = torch.autograd.grad(first.pow(2).sum(), (A, B), create_graph=True)
        third = torch.autograd.grad(sum(each.pow(2).sum() for each in second), (A, B))
        return first, *second, *third

    found = derivatives(lambda A, B: linalg.solve(A, B, strategy="triangular_solve"))
    torch.testing.assert_close(found, derivatives(torch.linalg.solve))


def test_gradients_go_through_all_levels_that_have_ended():
    """What an inner transform leaves behind, used when the outer one has ended, too."""
    A = torch.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)

    def inverse(A):
        return linalg.inv(A, strategy="triangular_solve")

    def left_behind(A):
        left = []

        def leaving(A):
            result, pullback = torch.func.vjp(inverse, A)
            left.extend((A, pullback))
            return result

        torch.func.vjp(lambda A: torch.func.vjp(leaving, A)[0], A)
        return left

    assert gradcheck(lambda A: inverse(left_behind(A)[0]), A)
    assert gradcheck(lambda A: left_behind(A)[1](torch.ones_like(A)), A)
