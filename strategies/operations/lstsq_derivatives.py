"""Derivatives of `lstsq` from what the fast path has computed."""

from typing import Any

import torch
from torch import Tensor

from strategies.autograd.fast_path import SecondGradients
from strategies.autograd.fast_path_node import Computed
from strategies.autograd.rule import Gradients, Tensors
from strategies.builtin.triangular_solve import by_qr
from strategies.factors import Dense
from strategies.factors.householder import basis, qr
from strategies.factors.preconditioned import Preconditioned
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import lstsq as formula
from strategies.formulas.solve import rhs_tangent
from strategies.operations.kept_factors import of_any_rank, of_lu, with_full_ranks
from strategies.operations.pinv import pinv
from strategies.operations.right_hand_sides import as_columns
from strategies.operations.scaled_rule import with_normalized_cotangents, with_normalized_directions
from strategies.strategy import Strategy, Tolerance


def smooth_inverse(
    strategy: Strategy, A: Tensor, rcond: Tolerance, *, are_full: bool
) -> PseudoInverse:
    """A⁺ as a differentiable function of A."""
    if are_full:
        return Preconditioned.of(A)
    return Dense.of_any_rank(A, pinv(A, rtol=rcond, strategy=strategy))


def explicit(
    strategy: Strategy, inputs: Gradients, outputs: Tensors, cotangents: Tensors, *tolerances: float
) -> Tensors:
    """As `FastPath.explicit`."""
    (A, B), (X, *others), (G, *of_residuals) = inputs, outputs, cotangents
    assert A is not None
    if is_vector := X.ndim < A.ndim:
        B, X, G = as_columns((B, X, G))
    as_rows = (each.unsqueeze(-2) for each in of_residuals)
    of_A, of_B = _explicit_by_columns(strategy, (A, B), (X, *others), (G, *as_rows), *tolerances)
    return of_A, of_B.squeeze(-1) if is_vector else of_B


@with_normalized_cotangents
def _explicit_by_columns(
    strategy: Strategy,
    inputs: Tensors,
    outputs: Tensors,
    cotangents: Tensors,
    _atol: float = 0.0,
    rcond: float | None = None,
) -> Tensors:
    (A, B), (X, _, rank, *_), (G, *of_residuals) = inputs, outputs, cotangents
    are_full = bool((rank == min(A.shape[-2:])).all())
    inverse = smooth_inverse(strategy, A, rcond, are_full=are_full)
    of_A, of_B = formula.backward(inverse, A, B, X, G)
    assert of_A is not None
    if of_residuals and are_full and A.shape[-2] > A.shape[-1]:
        change = 2 * (B - A @ X) * of_residuals[0]
        of_A, of_B = of_A - change @ X.mH, of_B + change
    return of_A, of_B


def tangents(computed: Computed, of_inputs: Gradients) -> Tensors:
    """As `FastPath.tangents`."""
    (A, rhs), (of_A, of_rhs) = computed.inputs, of_inputs
    X, residuals = computed.outputs[:2]
    if is_vector := rhs.ndim < A.ndim:
        rhs, X, of_rhs = as_columns((rhs, X, of_rhs))
    of_X = formula.jvp(_kept_inverse(computed), A, rhs, X, of_A, of_rhs)
    if computed.kept is not None and computed.found.plan.any_rank:

        def jvp(inverse: PseudoInverse, some: Tensor) -> Tensor:
            moved = (None if each is None else each[some] for each in (of_A, of_rhs))
            return formula.jvp(inverse, A[some], rhs[some], inverse.apply(rhs[some]), *moved)

        of_X = with_full_ranks(of_X, computed, computed.outputs[2], jvp)
    solution = of_X.squeeze(-1) if is_vector else of_X
    if not residuals.numel():
        # New, since PyTorch would recurse without end for a tensor that is its own tangent.
        return solution, torch.zeros_like(residuals)
    # Residuals are orthogonal to A, so that a change of X is none of theirs.
    change = rhs_tangent(X, of_A, of_rhs)
    return solution, 2 * ((rhs - A @ X).conj() * change).real.sum(-2)


def second_backward(
    computed: Computed, gradients: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients | None:
    """As `FastPath.second_backward`, at full rank."""
    (A, B), (X, *others), (G, *of_others) = computed.inputs, computed.outputs, cotangents
    if G is None or any(each is not None for each in of_others):  # of residuals
        return None
    if X.ndim == A.ndim:
        return _second_by_columns(computed, gradients, cotangents, directions)
    B, X, G, of_B = as_columns((B, X, G, directions[1]))
    columns = computed._replace(inputs=(A, B), outputs=(X, *others))
    cotangents, directions = (G, *of_others), (directions[0], of_B)
    second: Any = _second_by_columns(columns, gradients, cotangents, directions)
    (of_A, of_B), of_outputs, (of_G, *_) = second
    return (of_A, of_B.squeeze(-1)), of_outputs, (of_G.squeeze(-1), *of_others)


@with_normalized_directions
def _second_by_columns(
    computed: Computed, _: Gradients, cotangents: Gradients, directions: Gradients
) -> SecondGradients:
    (A, B), X, (G, *others) = computed.inputs, computed.outputs[0], cotangents
    assert G is not None
    of_A, of_B, of_G = formula.second_backward(_of_full_rank(computed), A, B, X, G, *directions)
    return (of_A, of_B), (None,) * len(computed.outputs), (of_G, *others)


def _kept_inverse(computed: Computed) -> PseudoInverse:
    (_, _, rank, values), factors = computed.outputs, computed.factors
    if computed.kept is None:
        return computed.factored()
    if values.numel():
        U, Vh = factors
        return of_any_rank(U, Vh, values, rank)
    if len(factors) > 2:
        core, U, Vh = factors
        return of_any_rank(U, Vh, core, rank)
    return _of_full_rank(computed)


def _of_full_rank(computed: Computed) -> PseudoInverse:
    A, factors = computed.inputs[0], computed.factors
    if A.shape[-2] == A.shape[-1]:
        return of_lu(*factors)
    if A.shape[-2] < A.shape[-1]:
        transposed, scales = factors
        reflectors = transposed.mT  # and R, of Aᴴ = Q R
        R = reflectors[..., : A.shape[-2], :].triu()
        return by_qr(basis(reflectors, scales), R).adjoint
    # R alone is kept, which is not enough for a right-hand side that is mostly out of the range of A.
    return by_qr(*qr(A))
