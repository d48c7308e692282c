import math

import pytest
from by_hand import STABLE, UNSTABLE, cell_of, run_of, took

from strategies.measuring import Machine, Objective, Status
from strategies.selection import between_machines as module
from strategies.selection.between_machines import Against
from strategies.selection.eligibility import ANY
from strategies.selection.verdicts import judge, judge_cell

HERE = Machine("here", threads=2, torch="2.13.0")
THERE = Machine("there", threads=1, torch="2.13.1", gpu="a card")


def judged(*measurements, native=STABLE):
    known = dict.fromkeys(("fused", "qr_pinv"), STABLE) | {"native": native}
    return judge_cell(HERE, cell_of(*measurements), ANY, known)


@pytest.mark.parametrize(
    ("seconds", "spread", "expected"),
    [
        (0.5, 1.1, Against.FASTER),
        (1.25, 1.01, Against.SLOWER),
        (1.01, 1.01, Against.SAME),
        (0.9, 1.2, Against.UNDECIDED),
        (1.0, 1.2, Against.UNDECIDED),
    ],
)
def test_the_interval_decides(seconds, spread, expected):
    cell = judged(took("native", 1), took("fused", seconds, spread), native=UNSTABLE)
    found, (ratio, low, high) = module.against_native(cell, Objective.FORWARD_BACKWARD)
    assert found is expected
    assert (ratio, low, high) == pytest.approx(
        (1 / seconds, 1 / seconds / spread, spread / seconds)
    )
    assert not module.is_native_stable(cell)


def test_native_is_the_same_as_itself_and_may_be_missing():
    cell = judged(took("native", 1), took("fused", 2))
    assert module.against_native(cell, Objective.FORWARD_BACKWARD) == (Against.SAME, (1, 1, 1))
    assert module.is_native_stable(cell)
    failed = took("native", status=Status.FAILED)
    alone = judged(failed, took("fused", 2))
    assert module.against_native(alone, Objective.FORWARD_BACKWARD)[0] is Against.ALONE
    none = judged(failed, took("fused", status=Status.FAILED))
    assert module.against_native(none, Objective.FORWARD_BACKWARD)[0] is Against.NONE


def flips_of(first, second):
    case = first.case
    return list(module.flips({case: first}, {case: second}))


def test_a_flip_is_told_apart_on_both_machines():
    one = judged(took("fused", 1), took("qr_pinv", 2))
    other = judged(took("fused", 3), took("qr_pinv", 1))
    (flip,) = flips_of(one, other)
    assert flip.costs == pytest.approx((2, 3))
    assert flip.case == one.case
    assert flips_of(one, one) == []


def test_a_tie_or_what_may_not_be_used_is_no_flip():
    one = judged(took("fused", 1), took("qr_pinv", 2))
    tie = judged(took("fused", 1.1, 1.2), took("qr_pinv", 1))
    unusable = judged(took("fused", status=Status.FAILED), took("qr_pinv", 1))
    assert tie.chosen.strategy == unusable.chosen.strategy == "qr_pinv"
    assert flips_of(one, tie) == flips_of(one, unusable) == []


def test_what_differs_is_said_and_what_is_not_known_does_not_count():
    assert module.differing(HERE, THERE) == "2 against 1 threads"
    assert module.differing(HERE, HERE) == "nothing that is known"


# On each of these machines the other one's choice is slower, in one of two cases.
NATIVE, FUSED = took("native", 1), took("fused", 0.5)
SAME = cell_of(NATIVE, FUSED, took("qr_pinv", 0.9), case="inv 8x8")
RUNS = [
    run_of(cell_of(NATIVE, FUSED, took("qr_pinv", 0.25)), SAME, machine=HERE),
    run_of(cell_of(NATIVE, FUSED, took("qr_pinv", 4.0)), SAME, machine=THERE),
]


def test_a_policy_is_judged_by_the_times_of_every_machine():
    places = module.by_machine(judge(RUNS))
    found = {(c.policy_of, c.measured_on): c for c in module.carried(RUNS, places, ANY)}
    assert len(found) == 4
    for (policy_of, measured_on), worst in {
        ("here", "here"): 1,
        ("here", "there"): 8,
        ("there", "here"): 2,
        ("there", "there"): 1,
    }.items():
        each = found[policy_of, measured_on]
        assert each.summary.worst == pytest.approx(worst)
        assert each.summary.cases == 2
        assert each.is_elsewhere == (policy_of != measured_on)
    (lost,) = found["here", "there"].slower
    assert (lost.strategy, lost.over_native[0]) == ("qr_pinv", 0.25)
    assert not found["there", "here"].slower


def test_draws_are_judged_by_the_policy_of_their_own_machine():
    cell = cell_of(took("fused", 3), took("qr_pinv", 1), case="pinv 63x8")
    places = module.by_machine(judge(RUNS))
    assert module.drawn(RUNS, places, ANY) == []
    (found,) = module.drawn([*RUNS, run_of(cell, kind="draw", machine=THERE)], places, ANY)
    assert (found.policy_of, found.measured_on) == ("there", "there")
    assert found.summary.worst == pytest.approx(3)


def test_an_interval_reads_as_one():
    assert module.interval((1.2, 1.104, 1.31)) == "1.20 (1.10 to 1.31)"
    assert module.interval((math.nan,) * 3) == "– (– to –)"
