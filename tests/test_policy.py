import pytest

from strategies import policy as policies
from strategies import registry
from strategies.policy import Policy, position, ranking


def cell(m, n, batch=0, rank=None, **times):
    use = min(times, key=times.get)
    return {"m": m, "n": n, "rhs": 1, "batch": batch, "rank": rank, "use": use, "times": times}


def cells(*entries):
    return [policies.Cell.of(entry) for entry in entries]


def content(operation, full_rank, deficient=(), default=("triangular_solve", "qr_pinv")):
    by_rank = {"full_rank": full_rank, "rank_deficient": list(deficient)}
    first, *others = default
    defaults = {"full_rank": {"strategy": first, "then": others}}
    if deficient:
        defaults["any_rank"] = {"strategy": "qr_pinv", "then": []}
    entry = {"default": defaults, "cells": {"cpu": {"float64": by_rank}}}
    return {"operations": {operation: entry}}


@pytest.fixture
def policy():
    square = [
        cell(4, 4, batch=1000, native=1, qr_pinv=4),
        cell(64, 64, native=1, qr_pinv=2),
        cell(1024, 1024, native=8, qr_pinv=1),
    ]
    return Policy(content("inv", square))


def test_a_measured_case_is_answered_by_its_cell():
    tie = {"use": "native", "times": {"native": 1.04, "qr_pinv": 1.0}}
    known = cells(cell(8, 8, qr_pinv=1, native=9), cell(64, 64, native=1) | tie)
    assert ranking(known, position(64, 64)) == ("native", "qr_pinv")


@pytest.mark.parametrize(("n", "use"), [(70, "native"), (100, "native"), (700, "qr_pinv")])
def test_between_cells_the_mean_by_nearness_decides(policy, n, use):
    assert policy.ranking("inv", n, n)[0] == use


def test_a_strategy_that_is_good_all_around_beats_the_winner_of_the_nearest_cell():
    known = cells(
        cell(16, 16, qr_pinv=1, batch_last=1.01, native=9),
        *(cell(2**k, 2**k, qr_pinv=5, batch_last=1, native=9) for k in (5, 2, 1)),
    )
    assert ranking(known, position(16, 16))[0] == "qr_pinv"
    assert ranking(known, position(20, 20))[0] == "batch_last"


def test_what_is_ineligible_nearby_comes_last():
    known = cells(cell(8, 8, explicit_inverse=1, qr_pinv=5), cell(64, 64, qr_pinv=1))
    assert ranking(known, position(9, 9)) == ("qr_pinv", "explicit_inverse")


def test_where_nothing_is_eligible_in_all_cells_the_nearest_answers():
    known = cells(cell(8, 8, explicit_inverse=1), cell(64, 64, qr_pinv=1))
    assert ranking(known, position(9, 9)) == ("explicit_inverse",)


def test_an_unmeasured_dtype_borrows(policy):
    assert policy.ranking("inv", 1024, 1024, dtype="complex64")[0] == "qr_pinv"


def test_an_unmeasured_kind_of_device_gets_the_default(policy):
    assert policy.ranking("inv", 1024, 1024, device="cuda:0") == ("triangular_solve", "qr_pinv")


def test_what_was_never_measured_gets_the_baseline(policy):
    assert policy.ranking("det", 8, 8) == ()
    (chosen,) = policy.candidates("det", 8, 8, 1, 0, "float64", "cpu")
    assert chosen.name == "native"


def test_empty_matrices_have_a_place(policy):
    assert policy.ranking("inv", 0, 0)[0] == "native"


def test_a_device_may_have_an_index(policy):
    assert policy.ranking("inv", 1024, 1024, device="cpu:0")[0] == "qr_pinv"


def test_where_the_best_is_not_installed_the_next_best_is_used(monkeypatch):
    known = [cell(8, 8, somebody_elses=1, explicit_inverse=2, native=3)]
    policy = Policy(content("inv", known, default=("somebody_elses", "explicit_inverse")))
    for device in ("cpu", "cuda"):
        (chosen,) = policy.candidates("inv", 8, 8, 1, 0, "float64", device)
        assert chosen is registry.get("explicit_inverse")


def test_what_refuses_a_rank_is_followed_by_the_best_that_takes_any():
    full, deficient = (
        cell(8, 4, triangular_solve=1, native=3),
        cell(8, 4, rank=2, somebody_elses=1, svd_truncated_pinv=1.5, qr_pinv=2),
    )
    policy = Policy(content("pinv", [full], [deficient]))
    names = [s.name for s in policy.candidates("pinv", 8, 4, 1, 0, "float64", "cpu")]
    assert names == ["triangular_solve", "svd_truncated_pinv"]
