"""Every strategy's gradients are in their documented class, on the whole well-posed gallery."""

import itertools

import pytest
import torch

import strategies
from strategies.accuracy import classes, gallery, measures
from strategies.accuracy.classes import FIRST, WELL_POSED, OutsideClassError
from strategies.errors import LinAlgError
from strategies.measuring import Case
from strategies.measuring.case import SQUARE_ONLY
from strategies.testing.gradient_checks import ratio_of

OPERATIONS = ("lu_factor", "pinv", "lstsq", "solve", "inv", "det", "slogdet")
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
DEFICIENT = ("first_column_zero", "last_column_zero", "last_half_columns_zero", "half_rank", "zero")


def cases(operation, dtype, names):
    shapes = [(12, 12)] if operation in SQUARE_ONLY else [(12, 12), (20, 6), (6, 20)]
    for shape, name in itertools.product(shapes, names):
        yield Case(operation, shape, dtype=dtype, matrix=name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", strategies.available())
def test_well_posed_gallery(name, operation, dtype):
    strategy = strategies.get(name)
    for case in cases(operation, dtype, WELL_POSED):
        classes.judge(name, operation, case.inputs()[0], lambda case=case: ratio_of(case, strategy))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("operation", ["lu_factor", "slogdet"])
@pytest.mark.parametrize("name", strategies.available())
def test_scaling_to_the_ends_of_the_range_costs_nothing(name, operation, dtype):
    """The gradients of the other operations leave the range there, whoever computes them."""
    for case in cases(operation, dtype, ("near_underflow", "near_overflow")):
        assert ratio_of(case, strategies.get(name)) < measures.PASS_BELOW


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("operation", ["pinv", "lstsq"])
@pytest.mark.parametrize("name", strategies.available())
def test_exactly_deficient_gallery(name, operation, dtype):
    strategy = strategies.get(name)
    for case in cases(operation, dtype, DEFICIENT):
        if strategy.requires_full_rank and case.known_rank < min(case.shape):
            with pytest.raises(LinAlgError, match=name):
                ratio_of(case, strategy)
        else:
            assert ratio_of(case, strategy) < measures.PASS_BELOW, case.label


@pytest.mark.parametrize("matrix", ["first_column_zero", "last_column_zero"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", strategies.available())
def test_det_at_corank_one(name, dtype, matrix):
    ratio = ratio_of(Case("det", (12, 12), dtype=dtype, matrix=matrix), strategies.get(name))
    # The adjugate is not zero there, PyTorch's gradient is: it has no digit right.
    all_wrong = 0.1 / measures.unit_roundoff(dtype)
    is_native = strategies.get(name).forward_is_differentiable
    assert ratio > all_wrong if is_native else ratio < measures.PASS_BELOW


def test_the_well_posed_gallery_is_of_the_gallery():
    assert set(WELL_POSED) <= set(gallery.names())


def test_every_exception_names_a_strategy_an_operation_and_a_reason():
    for name, operation, accuracy_class in classes.listed():
        assert name in strategies.available()
        assert operation in OPERATIONS
        assert len(accuracy_class.reason) > 40


def test_a_third_party_is_held_to_the_first_class():
    assert classes.class_of("somebody_elses", "lstsq") is FIRST


def test_an_error_outside_its_class_is_told():
    with pytest.raises(OutsideClassError, match=r"inv by mine: the error is 31 times.* allows 30"):
        classes.judge("mine", "inv", torch.eye(3), lambda: 31.0)


def test_a_refusal_is_no_way_out_of_the_first_class():
    def refuse():
        raise LinAlgError("too hard")

    with pytest.raises(LinAlgError):
        classes.judge("mine", "inv", torch.eye(3), refuse)


def test_the_square_of_the_condition_number_may_be_refused_when_no_digit_is_left():
    def refuse():
        raise LinAlgError("AᴴA is singular")

    matrix = gallery.random_with_condition((20, 6), torch.float32, 4).matrix
    classes.judge("explicit_inverse", "pinv", matrix, refuse)
    with pytest.raises(LinAlgError):
        classes.judge("explicit_inverse", "pinv", torch.eye(20, 6), refuse)
