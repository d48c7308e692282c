"""`eig`, eigenvalues and eigenvectors of general matrices."""

from collections.abc import Sequence

import torch
from torch import Tensor

from strategies.autograd.choice import (
    StrategyChoice,
    are_matrices,
    choose,
    is_left_to_torch,
    name_of,
)
from strategies.autograd.nodes import is_forward_alone, run
from strategies.autograd.operators import Operator
from strategies.autograd.rule import Gradients, Rule, Tensors, only
from strategies.errors import raise_if_singular
from strategies.factors.elimination import solve
from strategies.formulas import eig as formula
from strategies.operations.results import EigResult
from strategies.operations.traceable import traceable_by
from strategies.strategy import Saved, Strategy

__all__ = ["EigResult", "eig"]

RECORDS = ()

_LARGE = 512
"""Rows from which a product less is faster than fewer calls, as measured."""


class _Eig(Rule):
    name = "eig"
    differentiable = 2
    unread_inputs = (0,)

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, None]:
        return tuple(torch.linalg.eig(*inputs)), None

    def backward(
        self, strategy: Strategy, saved: Saved, cotangents: Tensors, needed: Sequence[bool]
    ) -> Gradients:
        values, V = saved.outputs
        values_bar, V_bar = cotangents
        products = formula.column_products(V, V_bar)
        _check_phases(products.imag)
        inverse = strategy.factor(V)
        if not inverse.full_column_rank:
            defective = inverse.rank < V.shape[-1]
            raise_if_singular(defective, strategy.name, "a defective matrix has no gradient")
        factor = formula.right_factor(values, V, values_bar, V_bar, products)
        gradient = inverse.apply_adjoint(factor)
        return (_like(saved.matrix, gradient),)

    def explicit_backward(self, strategy: Strategy, at: Saved, cotangents: Tensors) -> Tensors:
        values, V = at.outputs
        values_bar, V_bar = cotangents
        products = formula.column_products(V, V_bar)
        factor = formula.right_factor(values, V, values_bar, V_bar, products)
        return (_like(at.matrix, solve(V.mH, factor)),)

    def jvp(self, strategy: Strategy, at: Saved, tangents: Gradients) -> Tensors:
        values, V = at.outputs
        return formula.jvp(values, V, only(tangents).to(V.dtype))


def _like(matrix: Tensor, gradient: Tensor) -> Tensor:
    return gradient if matrix.is_complex() else gradient.real


def _check_phases(derivatives: Tensor) -> None:
    """Raise as PyTorch does, at the tolerance of PyTorch."""
    if not torch.allclose(derivatives, torch.zeros_like(derivatives), rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication "
            "by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


def _traced_eig(A: Tensor, *, strategy: StrategyChoice = "auto") -> EigResult:
    # As `is_left_to_torch`, but for the policy, which a compiler does not read.
    if not are_matrices(A, square=True) or (strategy == "auto" and A.shape[-1] < _LARGE):
        return EigResult(*torch.linalg.eig(A))
    return EigResult(*_EIG(A, name_of(strategy)))


@traceable_by(_traced_eig)
def eig(A: Tensor, *, strategy: StrategyChoice = "auto") -> EigResult:
    """The eigenvalues and eigenvectors of square matrices, A V = V diag(λ).

    As `torch.linalg.eig`, whose normalization it has: columns of length one, of arbitrary phase. A loss
    has to be independent of the phases. There is a gradient where the eigenvalues are distinct.

    Args:
        A: (..., n, n), of a dtype as in `pinv`.
        strategy: how V⁻ᴴ is applied in the backward: a name from `strategies.available()`, a
            `Strategy`, or "auto".

    Returns:
        The eigenvalues, complex (..., n), in no order, and V, complex (..., n, n).

    Raises:
        torch.linalg.LinAlgError: in the backward, V is singular to working precision: the
            matrix is defective.
        RuntimeError: A is not a batch of square float matrices; or, in the backward, the loss depends on
            the phases.

    Example:
        >>> eig(torch.tensor([[2.0]])).eigenvalues
        tensor([2.+0.j])
    """
    is_small = isinstance(A, Tensor) and A.ndim > 1 and A.shape[-1] < _LARGE
    if not (
        is_left_to_torch(strategy, "eig", is_small) or is_forward_alone(strategy, A)
    ) and are_matrices(A, square=True):
        chosen, *_ = choose(strategy, "eig", A)
        if not chosen.forward_is_differentiable:
            return EigResult._make(run(_Eig(), chosen, A))
    return EigResult._make(torch.linalg.eig(A))


_EIG = Operator("eig", ["A"], outputs=2, differentiable=2)
