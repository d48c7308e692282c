import pytest

from strategies.policy import Policy


def cell(m, n, use, batch=0):
    return {"m": m, "n": n, "rhs": 1, "batch": batch, "rank": None, "use": use, "ties": []}


@pytest.fixture
def policy():
    square = [cell(4, 4, "native", batch=1000), cell(64, 64, "native"), cell(1024, 1024, "qr_pinv")]
    cells = {"cpu": {"float64": {"full_rank": square}}}
    default = {"full_rank": {"strategy": "triangular_solve"}}
    return Policy({"operations": {"inv": {"default": default, "cells": cells}}})


@pytest.mark.parametrize(("n", "use"), [(64, "native"), (200, "native"), (300, "qr_pinv")])
def test_the_nearest_cell_answers(policy, n, use):
    assert policy.pick("inv", n, n) == use


def test_an_unmeasured_dtype_borrows(policy):
    assert policy.pick("inv", 1024, 1024, dtype="complex64") == "qr_pinv"


def test_an_unmeasured_kind_of_device_gets_the_default(policy):
    assert policy.pick("inv", 1024, 1024, device="cuda:0") == "triangular_solve"


def test_what_was_never_measured_gets_the_baseline(policy):
    assert policy.pick("det", 8, 8) == "native"
    assert policy.pick("inv", 8, 8, device="cuda", rank="rank_deficient") == "native"


def test_empty_matrices_have_a_place(policy):
    assert policy.pick("inv", 0, 0) == "native"


def test_a_device_may_have_an_index(policy):
    assert policy.pick("inv", 1024, 1024, device="cpu:0") == "qr_pinv"
