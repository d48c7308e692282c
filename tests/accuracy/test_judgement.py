"""Every strategy's gradients are in the class that it declares, on the whole well-posed gallery."""

import itertools
from collections.abc import Iterator

import pytest
import torch

import strategies
from strategies import operations
from strategies.accuracy import gallery, measures
from strategies.accuracy.judgement import OutsideClassError, class_of, judge
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import FULL, NORMAL_EQUATIONS
from strategies.formulas.amplification import unit_roundoff
from strategies.measuring import Case
from strategies.testing.gradient_checks import ratio_of

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
DEFICIENT = ("first_column_zero", "last_column_zero", "last_half_columns_zero", "half_rank", "zero")

of_each_strategy = pytest.mark.parametrize("name", strategies.available())


def cases(
    operation: str, names: tuple[str, ...], dtypes: tuple[torch.dtype, ...] = DTYPES
) -> Iterator[Case]:
    square = operations.get(operation).square
    shapes = [(12, 12)] if square else [(12, 12), (20, 6), (6, 20)]
    for dtype, shape, name in itertools.product(dtypes, shapes, names):
        yield Case(operation, shape, dtype=dtype, matrix=name)


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations.names())
@of_each_strategy
def test_well_posed_gallery(name: str, operation: str) -> None:
    strategy = strategies.get(name)
    for case in cases(operation, gallery.WELL_POSED):
        try:
            judge(strategy, operation, case.inputs()[0], lambda case=case: ratio_of(case, strategy))
        except LinAlgError as error:
            if case.matrix != "wilkinson_growth" or "grow so much" not in str(error):
                raise


@of_each_strategy
def test_scaling_to_the_ends_of_the_range_costs_nothing(name: str) -> None:
    """The gradients of the other operations leave the range there, whoever computes them."""
    for operation in ("lu_factor", "slogdet"):
        for case in cases(operation, ("near_underflow", "near_overflow"), DTYPES[::3]):
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
    assert class_of(Mine(), "lstsq") is NORMAL_EQUATIONS
    assert class_of(Mine(), "inv") is FULL


def test_an_error_outside_its_class_is_told() -> None:
    with pytest.raises(OutsideClassError, match=r"inv by mine: the error is 31 times.* allows 30"):
        judge(Mine(), "inv", torch.eye(3), lambda: 31.0)


def _refuse() -> float:
    raise LinAlgError("AᴴA is singular")


def test_a_refusal_is_no_way_out_of_the_full_class() -> None:
    with pytest.raises(LinAlgError):
        judge(Mine(), "inv", torch.eye(3), _refuse)


def test_a_class_may_be_refused_where_it_promises_no_digit() -> None:
    matrix = gallery.random_with_condition((20, 6), torch.float32, 4).matrix
    judge(Mine(), "lstsq", matrix, _refuse)
    with pytest.raises(LinAlgError):
        judge(Mine(), "lstsq", torch.eye(20, 6), _refuse)
