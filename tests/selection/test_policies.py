import math

import pytest
from by_hand import cell_of, ranking_of, run_of, stable_cell, took

from strategies.errors import UnusableFileError
from strategies.files.documents import json_text
from strategies.measuring import Machine, Status
from strategies.policy.schema import Policy
from strategies.selection import policies
from strategies.selection.eligibility import Criteria

NATIVE, REFUSED = took("native", 1), took("triangular_solve", status=Status.NOT_APPLICABLE)
RUN = run_of(
    cell_of(NATIVE, took("triangular_solve", 0.25), took("qr_pinv", 0.5)),
    cell_of(NATIVE, took("triangular_solve", 2.5), took("qr_pinv", 1.1), case="pinv 8x8"),
    cell_of(NATIVE, took("qr_pinv", 1 / 3), REFUSED, case="pinv 64x8 rank=2"),
)

# Another machine, which has a GPU, in two of three cases.
ELSEWHERE = run_of(
    cell_of(NATIVE, took("triangular_solve", 0.1), took("qr_pinv", 0.2)),
    cell_of(took("native", 9), took("qr_pinv", 1), case="inv 8x8"),
    cell_of(NATIVE, took("qr_pinv", 0.9), case="pinv 64x8 cuda"),
    machine=Machine("there", cpu="lathe", gpu="a card, another", threads=8, torch="2.9.0"),
)


@pytest.fixture
def policy():
    return policies.build([RUN], Criteria())


def test_a_cell_holds_the_choice_and_the_times_of_all_that_are_eligible(policy):
    cells = {(cell.m, cell.rank): cell for cell in policies.by_case(policy).values()}
    assert {key: cell.use for key, cell in cells.items()} == {
        (8, None): "native",
        (64, None): "triangular_solve",
        (64, 2): "qr_pinv",
    }
    assert cells[64, None].times == {"triangular_solve": 1, "qr_pinv": 2, "native": 4}
    assert cells[64, 2].times == {"qr_pinv": 1, "native": 3}


def test_the_single_default_has_the_smallest_worst_regret(policy):
    default = policy.operations["pinv"].full_rank
    assert (default.strategy, default.then) == ("qr_pinv", ("triangular_solve", "native"))
    assert default.worst_regret == pytest.approx(2)
    assert default.mean_regret == pytest.approx(math.sqrt(2 * 1.1), rel=1e-3)
    assert policy.operations["pinv"].any_rank.cells == 3


def test_covering_more_cases_comes_before_small_regret():
    failed = took("qr_pinv", status=Status.FAILED)
    fast = cell_of(took("native", 50), took("qr_pinv", 1))
    runs = [run_of(fast, cell_of(took("native", 50), failed, case="pinv 8x8"))]
    default = policies.build(runs, Criteria()).operations["pinv"].full_rank
    assert (default.strategy, default.worst_regret, default.uncovered) == ("native", 50, 0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"version": 4', '"version": 9', "has version 9; this package reads 4: upgrade"),
        ("[64, 8, 1", "[-64, 8, 1", "is damaged: Expected `int` >= 0"),
        ('"qr_pinv": 2.0', '"qr_pinv": 1e999', "is damaged: Number out of range"),
        ('"qr_pinv": 2.0', '"qr_pinv": 0', "is damaged: Expected `float` > 0.0"),
    ],
)
def test_a_damaged_policy_is_named_with_what_is_wrong(policy, tmp_path, old, new, said):
    path = tmp_path / "policy.json"
    path.write_text(json_text(policy))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UnusableFileError) as caught:
        Policy.read(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (None, r"results of several machines \(here, there\): name the one"),
        ("nowhere", "no results of a machine nowhere: there is here, there"),
    ],
)
def test_of_several_machines_one_that_has_results_is_to_be_named(base, said):
    with pytest.raises(ValueError, match=said):
        policies.build([RUN, ELSEWHERE], Criteria(), base)


def test_a_policy_of_one_machine_keeps_what_others_say_by_device(policy):
    built = policies.build([ELSEWHERE, RUN], Criteria(), "here")
    assert policies.by_case(built) == policies.by_case(policy)
    assert {machine["name"] for machine in built.provenance} == {"here"}
    on_cpu, on_gpu = built.others
    assert (on_cpu.device, on_cpu.validators.cpu, on_cpu.validators.gpu) == ("cpu", "lathe", "")
    assert (on_gpu.device, on_gpu.validators.gpu) == ("cuda", "a card")
    assert on_cpu.threads == on_gpu.threads == on_cpu.machine["threads"] == 8
    assert on_cpu.cells.keys() == {"pinv", "inv"}
    assert on_gpu.cells.keys() == {"pinv"}
    # That of the other operation is known of the first machine.
    assert on_cpu.stability.keys() == {"inv"}


def test_of_other_machines_what_is_far_from_the_fastest_is_left_out():
    slow = took("triangular_solve", 9), took("native", 10)
    there = run_of(cell_of(took("qr_pinv", 1), *slow), machine=Machine("there"))
    (part,) = policies.build([RUN, there], Criteria(), "here").others
    ((cell,),) = (part.cells["pinv"]["float64"],)
    assert cell.times == {"qr_pinv": 1, "native": 10}


def test_the_evidence_of_stability_goes_with_it():
    timed = cell_of(took("qr_pinv", 2), took("explicit_inverse", 1))
    hard = stable_cell("pinv 9x4 cond=1e6", qr_pinv=3.0, explicit_inverse=1e6)
    runs = [run_of(timed), run_of(hard, kind="stability")]
    policy = policies.build(runs, Criteria())
    found = policy.operations["pinv"].stability
    assert (found["qr_pinv"].is_stable, found["explicit_inverse"].is_stable) == (True, False)
    assert ranking_of(policy, "pinv", 64, 8) == ("qr_pinv",)


def with_times(first, second, case="pinv 64x8"):
    """A policy of one cell, by the times of triangular_solve and qr_pinv."""
    measured = took("triangular_solve", first, 1.1), took("qr_pinv", second, 1.1)
    return policies.build([run_of(cell_of(took("native", 99), *measured, case=case))], Criteria())


def test_a_difference_within_a_tie_is_told_from_a_real_one():
    (tie,) = policies.differences(with_times(1, 1), with_times(4, 3))
    (real,) = policies.differences(with_times(1, 4), with_times(4, 1))
    assert (tie.is_tie, real.is_tie) == (True, False)
    assert (real.old.use, real.new.use) == ("triangular_solve", "qr_pinv")


def test_agreement_leaves_out_ties_and_cells_of_one_policy_alone():
    decided, tied, other = with_times(1, 4), with_times(1, 1), with_times(4, 1)
    elsewhere = with_times(1, 4, case="pinv 9x9")
    for second, changes in ((decided, [False]), (other, [True]), (elsewhere, [])):
        found = policies.differences(decided, second)
        assert [each.is_change for each in found if not each.is_tie] == changes
    assert all(each.is_tie for each in policies.differences(tied, tied))
