"""`pinv`, the Moore–Penrose pseudo-inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.autograd.choice import StrategyChoice, choose, first_that_can, require_float_matrix
from strategies.autograd.nodes import Gradients, Rule, Tensors, run
from strategies.errors import raise_if_not_finite
from strategies.factors import Dense
from strategies.formulas import pinv as formula
from strategies.interface import Strategy, Tolerance
from strategies.pseudo_inverse import PseudoInverse

__all__ = ["as_factor", "pinv"]


@dataclass(frozen=True)
class _Pinv(Rule):
    name = "pinv"

    rtol: Tolerance = None
    atol: Tolerance = None

    def forward(self, strategy: Strategy, *inputs: Tensor) -> tuple[Tensors, PseudoInverse]:
        pinv, inverse = strategy.pseudo_inverse(inputs[0], rtol=self.rtol, atol=self.atol)
        raise_if_not_finite(pinv, inputs[0])
        return (pinv,), inverse

    def backward(
        self,
        strategy: Strategy,
        inverse: PseudoInverse | None,
        inputs: Tensors,
        outputs: Tensors,
        cotangents: Tensors,
        needed: Sequence[bool],
    ) -> Gradients:
        assert inverse is not None
        return (strategy.pinv_backward(inverse, inputs[0], cotangents[0]),)

    def explicit_backward(
        self, strategy: Strategy, inputs: Tensors, outputs: Tensors, cotangents: Tensors
    ) -> Tensors:
        return (formula.backward(as_factor(*inputs, *outputs), inputs[0], cotangents[0]),)

    def jvp(
        self, strategy: Strategy, inputs: Tensors, outputs: Tensors, tangents: Gradients
    ) -> Tensors:
        (tangent,) = tangents
        assert tangent is not None
        return (formula.jvp(as_factor(*inputs, *outputs), inputs[0], tangent),)


def as_factor(matrix: Tensor, pinv: Tensor) -> Dense:
    """A⁺ as a factor whose every use is differentiable in A and A⁺, of whatever rank."""
    rank = torch.zeros(matrix.shape[:-2], dtype=torch.int64, device=matrix.device)
    return Dense(matrix, pinv, rank, full_column_rank=False, full_row_rank=False)


def pinv(
    A: Tensor,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    hermitian: bool = False,
    strategy: StrategyChoice = "auto",
) -> Tensor:
    """The pseudo-inverse A⁺ of each matrix of a batch, differentiable at constant rank.

    As `torch.linalg.pinv`, with gradients along perturbations that keep the rank (Golub & Pereyra
    1973, eq. 4.12), repeated singular values included.

    Args:
        A: (..., m, n), float32, float64, complex64 or complex128.
        atol: singular values up to atol count as zero; a float or a tensor of the batch shape.
        rtol: singular values up to rtol·σ₁ count as zero; None: max(m, n)·ε, or 0 if atol is given.
        hermitian: A is Hermitian, and only its lower triangle is read.
        strategy: a name from `strategies.available()`, a `Strategy`, or "auto".

    Returns:
        A⁺, (..., n, m).

    Raises:
        torch.linalg.LinAlgError: A is rank-deficient and the strategy needs full rank.
        RuntimeError: A has fewer than two dimensions, or is not floating-point.

    Example:
        >>> A = torch.tensor([[3.0], [4.0]], requires_grad=True)
        >>> pinv(A, strategy="triangular_solve").sum().backward()
        >>> A.grad.round(decimals=4).flatten()
        tensor([-0.0272, -0.0496])
    """
    candidates = choose(strategy, "pinv", A)
    if candidates[0].forward_is_differentiable:
        return torch.linalg.pinv(A, atol=atol, rtol=rtol, hermitian=hermitian)
    require_float_matrix("pinv", A, square=hermitian)
    if hermitian:
        lower = A.detach().tril(-1)
        mirrored = lower + lower.mH + torch.diag_embed(A.detach().diagonal(dim1=-2, dim2=-1).real)
        # The values of the mirrored triangle with the gradient of A, as in torch.
        A = A + (mirrored - A.detach())

    def compute(chosen: Strategy) -> Tensor:
        if chosen.forward_is_differentiable:
            return torch.linalg.pinv(A, atol=atol, rtol=rtol)
        return run(_Pinv(rtol, atol), chosen, A)[0]

    return first_that_can(candidates, compute)
