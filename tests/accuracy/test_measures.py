"""The error ratio, and that every strategy's gradients are in the class that it declares."""

import functools
import itertools
import math

import pytest
import torch

import strategies
from strategies import operations
from strategies.accuracy import gallery, gradient, lu_gradient_at_factors, measures
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import FULL, NORMAL_EQUATIONS
from strategies.formulas.amplification import unit_roundoff
from strategies.measuring import Case
from strategies.testing.gradient_checks import ratio_of

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


@pytest.mark.parametrize("right_side", [None, "image"])
def test_stable_least_squares_passes_the_ratio(right_side):
    for dtype, shape in itertools.product(DTYPES, [(20, 6), (6, 20)]):
        case = Case("lstsq", shape, dtype=dtype, log10_cond=3.0, right_side=right_side)
        assert ratio_of(case, TriangularSolve()) < measures.PASS_BELOW


def test_added_error_excludes_the_factorization():
    a = gallery.make("random_condition_root", (16, 16), torch.float64).matrix.requires_grad_()
    packed, pivots = torch.linalg.lu_factor(a)
    g = torch.randn_like(packed)
    computed = torch.autograd.grad(packed, a, g)
    added = lu_gradient_at_factors(packed.detach(), pivots, g).relative_error(computed)
    total = gradient("lu_factor", (a,), (g,), pivots=pivots).relative_error(computed)
    assert added < total / 10


def test_ratio_is_the_worst_of_the_batch():
    error, bound = torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0])
    assert measures.error_ratio(error * 2.0**-53, bound, torch.float64) == 2.0


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_ratio_of_what_is_not_finite_is_infinite(error):
    assert measures.error_ratio(error, 1.0, torch.float64) == math.inf


DEFICIENT = ("first_column_zero", "last_column_zero", "last_half_columns_zero", "half_rank", "zero")

OTHERS = [pytest.param(n, marks=pytest.mark.slow) for n in strategies.available() if n != "native"]

of_each_strategy = pytest.mark.parametrize("name", strategies.available())


def cases(operation, names, step=1):
    square = operations.get(operation).square
    shapes = [(12, 12)] if square else [(12, 12), (20, 6), (6, 20)]
    for dtype, shape, name in itertools.product(DTYPES[::step], shapes, names):
        yield Case(operation, shape, dtype=dtype, matrix=name)


@pytest.mark.parametrize("operation", operations.names())
@pytest.mark.parametrize("name", ["native", *OTHERS])
def test_well_posed_gallery(name, operation):
    strategy = strategies.get(name)
    for case in cases(operation, gallery.WELL_POSED):
        try:
            ratio = functools.partial(ratio_of, case, strategy)
            measures.judge(strategy, operation, case.inputs()[0], ratio)
        except LinAlgError as error:
            if case.matrix != "wilkinson_growth" or "grow so much" not in str(error):
                raise


@of_each_strategy
def test_scaling_to_the_ends_of_the_range_costs_nothing(name):
    """The gradients of the other operations leave the range there, whoever computes them."""
    for operation in ("lu_factor", "slogdet"):
        for case in cases(operation, ("near_underflow", "near_overflow"), 3):
            assert ratio_of(case, strategies.get(name)) < measures.PASS_BELOW, case


@pytest.mark.slow
@of_each_strategy
def test_exactly_deficient_gallery(name):
    strategy = strategies.get(name)
    truncating = [o for o in operations.names() if operations.get(o).truncates]
    for case in itertools.chain(*(cases(operation, DEFICIENT) for operation in truncating)):
        if strategy.requires_full_rank and case.known_rank < min(case.shape):
            with pytest.raises(LinAlgError, match=name):
                ratio_of(case, strategy)
        else:
            assert ratio_of(case, strategy) < measures.PASS_BELOW, case


@of_each_strategy
def test_det_at_corank_one(name):
    strategy = strategies.get(name)
    for dtype in DTYPES:
        for matrix in ("first_column_zero", "last_column_zero"):
            ratio = ratio_of(Case("det", (12, 12), dtype=dtype, matrix=matrix), strategy)
            # The adjugate is not zero there, PyTorch's gradient is: it has no digit right.
            all_wrong = 0.1 / unit_roundoff(dtype)
            is_native = strategy.forward_is_differentiable
            assert ratio > all_wrong if is_native else ratio < measures.PASS_BELOW


@of_each_strategy
def test_every_declaration_has_a_reason(name):
    for accuracy_class in strategies.get(name).accuracy.values():
        assert len(accuracy_class.reason) > 40


class Mine(TriangularSolve):
    name = "mine"
    accuracy = {"lstsq": NORMAL_EQUATIONS}  # noqa: RUF012 - never written to


def test_a_strategy_declares_its_class():
    assert measures.class_of(Mine(), "lstsq") is NORMAL_EQUATIONS
    assert measures.class_of(Mine(), "inv") is FULL


def test_an_error_outside_its_class_is_told():
    with pytest.raises(
        measures.OutsideClassError, match=r"inv by mine: the error is 31 times.* allows 30"
    ):
        measures.judge(Mine(), "inv", torch.eye(3), lambda: 31.0)


def _refuse():
    raise LinAlgError("AᴴA is singular")


def test_a_class_may_be_refused_only_where_it_promises_no_digit():
    matrix = gallery.random_with_condition((20, 6), torch.float32, 4).matrix
    measures.judge(Mine(), "lstsq", matrix, _refuse)
    for operation, promised in (("lstsq", torch.eye(20, 6)), ("inv", torch.eye(3))):
        with pytest.raises(LinAlgError):
            measures.judge(Mine(), operation, promised, _refuse)
