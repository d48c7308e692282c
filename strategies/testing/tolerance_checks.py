"""What counts as zero: tolerances, in every function that takes one and in their derivatives."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from strategies import operations, registry
from strategies.accuracy.spectra import Request, with_singular_values
from strategies.errors import LinAlgError
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    Shaped,
    check_each,
    check_operations,
    close,
    device,
    numbered,
    require,
    shaped,
    sized,
    skip_native,
)
from strategies.testing.problems import Tensors

_SHAPES = ((12, 3), (3, 12), (9, 9), (4, 4))
_SMALL = 1e-6
_BETWEEN = 1e-3
_COARSE = 1e10
"""Times what rounding explains: far above 10⁻⁶, the smallest of the singular values in question, far
below 1. What is neither dropped nor kept exactly is as far off."""


class _Cut(NamedTuple):
    """Matrices of singular values near 1 and one of 10⁻⁶, a tolerance, and the ranks that follow."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    tolerance: dict[str, Any]
    is_cut: tuple[bool, ...]
    way: str

    def __str__(self) -> str:
        given = ", ".join(
            f"{name}={value.tolist() if isinstance(value, Tensor) else value}"
            for name, value in self.tolerance.items()
        )
        size = sized(self.shape, self.dtype)
        return f"{self.way} of {size}, singular values 1 to 0.5 and 1e-6, {given}"

    @property
    def matrix(self) -> Tensor:
        return with_smallest(_SMALL, self.shape, self.dtype)

    @property
    def ranks(self) -> list[int]:
        full = min(self.shape[-2:])
        return [full - is_cut for is_cut in self.is_cut]


def with_smallest(value: float, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Matrices with singular values from 1 to 1/2, the smallest replaced."""
    *batch, m, n = shape
    singular = np.linspace(1, 0.5, min(m, n))
    singular[-1] = value
    drawn = with_singular_values(Request((m, n), dtype, tuple(batch), 40), singular)
    return torch.from_numpy(drawn).to(device(), dtype)


def _cuts(way: str = "factor") -> Iterator[_Cut]:
    """Batches of two, with one bound for both or one for each."""
    below = _SMALL / 1e3
    one_each = torch.tensor([_BETWEEN, below], dtype=torch.float64, device=device())
    bounds = ((_BETWEEN, (True, True)), (one_each, (True, False)), (below, (False, False)))
    for i, shape in enumerate(_SHAPES):
        dtype = (torch.float64, torch.complex128)[i % 2]
        for (bound, is_cut), name in itertools.product(bounds, ("rtol", "atol")):
            yield _Cut((2, *shape), dtype, {name: bound}, is_cut, way)


def _require_ranks(strategy: Strategy, compute: Callable[[], Any], case: _Cut) -> Any:
    """What is computed, or None where the strategy refuses what it has to refuse."""
    refuses = strategy.requires_full_rank and any(case.is_cut)
    try:
        found = compute()
    except LinAlgError as refusal:
        require(refuses, f"refused, though the ranks {case.ranks} are what it takes: {refusal}")
        return None
    require(not refuses, "taken, where LinAlgError is due: it needs full rank")
    return found


@check_each(lambda _: _cuts())
def _tolerances(strategy: Strategy, case: _Cut) -> None:
    """Rtol and atol of `factor` cut where they say, one bound a matrix too."""
    F = case.matrix
    compute = partial(strategy.factor, F.clone(), **case.tolerance)
    inverse = _require_ranks(strategy, compute, case)
    if inverse is not None:
        found = inverse.rank.tolist()
        require(found == case.ranks, f"factor gives ranks {found}, not {case.ranks}")
        for i, rank in enumerate(case.ranks):
            U, S, Vh = torch.linalg.svd(F[i], full_matrices=False)
            expected = (Vh.mH[:, :rank] / S[:rank]) @ U[:, :rank].mH
            what = f"dense() of member {i} against a truncated SVD"
            close(inverse.dense()[i], expected, what, loosened=_COARSE)


def _cuts_of(operation: Operation) -> Iterator[_Cut]:
    """As in torch, where rcond is a number."""
    for case in _cuts(operation.name):
        if operation.arity == 1 or isinstance(case.tolerance.get("rtol"), float):
            yield case


@check_operations("tolerances of", _cuts_of, lambda operation: operation.truncates)
def _check_tolerances(strategy: Strategy, case: _Cut) -> None:
    """Results, gradients and derivatives of those, of operations that take a tolerance."""
    skip_native(strategy, "whose gradients of lstsq know no rcond")
    operation = operations.get(case.way)
    inputs = (case.matrix, numbered((*case.shape[:-1], 2), case.dtype, 44))[: operation.arity]
    ((name, bound),) = case.tolerance.items()
    options = {"rcond" if operation.arity > 1 else name: bound}
    of_this = partial(_derivatives, strategy, operation, inputs, options)
    found = _require_ranks(strategy, of_this, case)
    if found is not None:
        # Derivatives at a condition number of 10⁶ are for the accuracy class to judge.
        names = list(found) if any(case.is_cut) else ["the result"]
        expected = _derivatives(registry.get("svd_truncated_pinv"), operation, inputs, options)
        for what in names:
            message = f"{what} against that of svd_truncated_pinv"
            close(found[what], expected[what], message, loosened=_COARSE)


def _derivatives(
    strategy: Strategy, operation: Operation, inputs: Tensors, options: dict[str, Any]
) -> dict[str, Tensor]:
    leaves = tuple(tensor.clone().requires_grad_() for tensor in inputs)

    def compute(*tensors: Tensor) -> Tensor:
        return operation.outputs(operation.function(*tensors, strategy=strategy, **options))[0]

    result = compute(*leaves)
    G = numbered(tuple(result.shape), result.dtype, 45).requires_grad_()
    (gradient,) = torch.autograd.grad(result, leaves[:1], G, create_graph=True)
    tangent = numbered(tuple(gradient.shape), gradient.dtype, 46)
    of_A, of_G = torch.autograd.grad(gradient, (leaves[0], G), tangent)
    tangents = (tangent, *map(torch.zeros_like, leaves[1:]))
    forward = torch.func.jvp(compute, tuple(map(Tensor.detach, leaves)), tangents)[1]
    return {
        "the result": result.detach(),
        "the gradient of A": gradient.detach(),
        "the second derivative": of_A,
        "the derivative of the gradient by the cotangent": of_G,
        "the tangent": forward,
    }


def _rank_shown(strategy: Strategy, way: str, F: Tensor) -> int:
    """As the strategy's factors, inverse or least-squares solution show it."""
    if way == "factor":
        return int(strategy.factor(F).rank)
    function = operations.get(way).function
    if way == "lstsq":
        return int(function(F, numbered((F.shape[0], 2), F.dtype, 47), strategy=strategy).rank)
    # A⁺ of a matrix of rank r has r singular values of 1 or more.
    return int((torch.linalg.svdvals(function(F, strategy=strategy)) > 0.5).sum())


@check_each(
    lambda _: shaped(((12, 2), (2, 64), (8, 8), (64, 2)), DTYPES, ("factor", "pinv", "lstsq"))
)
def _default_tolerance(strategy: Strategy, case: Shaped) -> None:
    """Without a tolerance max(m, n)·ε counts; with atol alone nothing relative does."""
    if case.what == "lstsq":
        skip_native(strategy, "whose lstsq has ranks that change from call to call")
    bound = max(case.shape) * torch.finfo(case.dtype).eps
    for value, is_zero in ((bound / 8, True), (bound * 8, False)):
        where = f"the smallest singular value is {value:.1e}, max(m, n)·ε is {bound:.1e}"
        try:
            F = with_smallest(value, case.shape, case.dtype)
            if strategy.requires_full_rank:
                # Triangular factors show the singular values of nothing but a diagonal.
                F = torch.zeros_like(F).diagonal_scatter(torch.linalg.svdvals(F).to(F.dtype))
                F.diagonal()[-1] = value
            rank = _rank_shown(strategy, case.what, F)
        except LinAlgError:
            require(strategy.requires_full_rank, f"{where}: refused")
            continue  # even where it should see more: that is a matter of its class
        due = min(case.shape) - is_zero
        refuses = is_zero and strategy.requires_full_rank
        require(not refuses, f"{where}: taken, where LinAlgError is due")
        require(rank == due, f"{where}: rank {rank}, not {due}")


@check_each(lambda _: ("factor", "pinv"))
def _atol_alone(strategy: Strategy, way: str) -> None:
    """With atol alone rtol is zero, as in torch: however small, what is larger counts."""
    F = torch.diag(torch.tensor([1.0, 1e-17], dtype=torch.float64)).to(device())
    try:
        if way == "factor":
            inverse = strategy.factor(F, atol=1e-30).dense()
        else:
            inverse = operations.get(way).function(F, atol=1e-30, strategy=strategy)
    except LinAlgError:
        require(strategy.requires_full_rank, "diag(1, 1e-17) with atol=1e-30: refused")
        return
    kept = float(inverse[1, 1])
    message = f"diag(1, 1e-17) with atol=1e-30: the inverse of 1e-17 is {kept:g}"
    require(abs(kept - 1e17) < 1e5, message)
