"""The error ratio, and that every strategy's gradients are in the class that it declares."""

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import strategies
from strategies import operations
from strategies.accuracy import gallery, gradient, lu_gradient_at_factors, measures
from strategies.builtin.triangular_solve import TriangularSolve, by_qr
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import FULL, NORMAL_EQUATIONS
from strategies.formulas.amplification import unit_roundoff
from strategies.measuring import Case
from strategies.testing.gradient_checks import ratio_of

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _randn_like(tensor: Tensor, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)


@pytest.mark.parametrize("operation", ["lu_factor", "pinv", "inv"])
def test_autograd_passes_the_ratio_on_regular_matrices(operation: str) -> None:
    for dtype in DTYPES:
        for name in set(gallery.WELL_POSED) - {"wilkinson_growth"}:
            matrix = gallery.make(name, (16, 16), dtype).matrix.requires_grad_()
            pivots = None
            output = getattr(torch.linalg, operation)(matrix)
            if operation == "lu_factor":
                output, pivots = output
            cotangent = _randn_like(output)
            computed = torch.autograd.grad(output, matrix, cotangent)
            exact = gradient(operation, (matrix,), (cotangent,), pivots=pivots)
            bound = measures.amplification(operation, (matrix,), (cotangent,))
            ratio = measures.error_ratio(exact.relative_error(computed), bound, dtype)
            assert ratio < measures.PASS_BELOW, (name, dtype)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)], ids=str)
def test_stable_least_squares_passes_the_ratio(shape: tuple[int, int]) -> None:
    for dtype in DTYPES:
        for noise in (0.0, 1.0):
            a = gallery.random_with_condition(shape, dtype, 3).matrix
            b = a @ _randn_like(a[0, :, None], 1) + noise * _randn_like(a[:, :1], 2)
            tall = shape[0] > shape[1]
            by_r = by_qr(*torch.linalg.qr(a if tall else a.mH))
            inverse = by_r if tall else by_r.adjoint
            apply, apply_adjoint = inverse.apply, inverse.apply_adjoint
            g = _randn_like(a[:1].mT, 3)
            x, z = apply(b), apply_adjoint(g)
            a_bar = (b - a @ x) @ apply(z).mH - z @ x.mH + apply_adjoint(x) @ (g - apply(a @ g)).mH
            error = gradient("lstsq", (a, b), (g,)).relative_error((a_bar, z))
            bound = measures.amplification("lstsq", (a, b), (g,))
            assert measures.error_ratio(error, bound, dtype) < measures.PASS_BELOW


def test_added_error_excludes_the_factorization() -> None:
    a = gallery.make("random_condition_root", (16, 16), torch.float64).matrix.requires_grad_()
    packed, pivots = torch.linalg.lu_factor(a)
    g = _randn_like(packed)
    computed = torch.autograd.grad(packed, a, g)
    added = lu_gradient_at_factors(packed.detach(), pivots, g).relative_error(computed)
    total = gradient("lu_factor", (a,), (g,), pivots=pivots).relative_error(computed)
    assert added < total / 10


def test_ratio_is_the_worst_of_the_batch() -> None:
    error, bound = torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0])
    assert measures.error_ratio(error * 2.0**-53, bound, torch.float64) == 2.0


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_ratio_of_what_is_not_finite_is_infinite(error: float) -> None:
    assert measures.error_ratio(error, 1.0, torch.float64) == math.inf


DEFICIENT = ("first_column_zero", "last_column_zero", "last_half_columns_zero", "half_rank", "zero")

of_each_strategy = pytest.mark.parametrize("name", strategies.available())


def cases(operation: str, names: tuple[str, ...], step: int = 1) -> Iterator[Case]:
    square = operations.get(operation).square
    shapes = [(12, 12)] if square else [(12, 12), (20, 6), (6, 20)]
    for dtype, shape, name in itertools.product(DTYPES[::step], shapes, names):
        yield Case(operation, shape, dtype=dtype, matrix=name)


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations.names())
@of_each_strategy
def test_well_posed_gallery(name: str, operation: str) -> None:
    strategy = strategies.get(name)
    for case in cases(operation, gallery.WELL_POSED):
        try:
            measures.judge(
                strategy, operation, case.inputs()[0], lambda case=case: ratio_of(case, strategy)
            )
        except LinAlgError as error:
            if case.matrix != "wilkinson_growth" or "grow so much" not in str(error):
                raise


@of_each_strategy
def test_scaling_to_the_ends_of_the_range_costs_nothing(name: str) -> None:
    """The gradients of the other operations leave the range there, whoever computes them."""
    for operation in ("lu_factor", "slogdet"):
        for case in cases(operation, ("near_underflow", "near_overflow"), 3):
            assert ratio_of(case, strategies.get(name)) < measures.PASS_BELOW, case


@pytest.mark.slow
@of_each_strategy
def test_exactly_deficient_gallery(name: str) -> None:
    strategy = strategies.get(name)
    truncating = [o for o in operations.names() if operations.get(o).truncates]
    for case in itertools.chain(*(cases(operation, DEFICIENT) for operation in truncating)):
        if strategy.requires_full_rank and case.known_rank < min(case.shape):
            with pytest.raises(LinAlgError, match=name):
                ratio_of(case, strategy)
        else:
            assert ratio_of(case, strategy) < measures.PASS_BELOW, case


@of_each_strategy
def test_det_at_corank_one(name: str) -> None:
    strategy = strategies.get(name)
    for dtype in DTYPES:
        for matrix in ("first_column_zero", "last_column_zero"):
            ratio = ratio_of(Case("det", (12, 12), dtype=dtype, matrix=matrix), strategy)
            # The adjugate is not zero there, PyTorch's gradient is: it has no digit right.
            all_wrong = 0.1 / unit_roundoff(dtype)
            is_native = strategy.forward_is_differentiable
            assert ratio > all_wrong if is_native else ratio < measures.PASS_BELOW


@of_each_strategy
def test_every_declaration_has_a_reason(name: str) -> None:
    for accuracy_class in strategies.get(name).accuracy.values():
        assert len(accuracy_class.reason) > 40


class Mine(TriangularSolve):
    name = "mine"
    accuracy = {"lstsq": NORMAL_EQUATIONS}  # noqa: RUF012 - never written to


def test_a_strategy_declares_its_class() -> None:
    assert measures.class_of(Mine(), "lstsq") is NORMAL_EQUATIONS
    assert measures.class_of(Mine(), "inv") is FULL


def test_an_error_outside_its_class_is_told() -> None:
    with pytest.raises(
        measures.OutsideClassError, match=r"inv by mine: the error is 31 times.* allows 30"
    ):
        measures.judge(Mine(), "inv", torch.eye(3), lambda: 31.0)


def _refuse() -> float:
    raise LinAlgError("AᴴA is singular")


def test_a_class_may_be_refused_only_where_it_promises_no_digit() -> None:
    matrix = gallery.random_with_condition((20, 6), torch.float32, 4).matrix
    measures.judge(Mine(), "lstsq", matrix, _refuse)
    for operation, promised in (("lstsq", torch.eye(20, 6)), ("inv", torch.eye(3))):
        with pytest.raises(LinAlgError):
            measures.judge(Mine(), operation, promised, _refuse)
