"""Derivatives of this package that once were above the limit of the oracle, each by its case."""

import pytest

from strategies.oracle import grader
from strategies.oracle.adapters import ours
from strategies.oracle.asking import CORE

SECOND = ("hvp", "hvp.forward_over_reverse", "hvp.reverse_over_forward")
FORWARD_OVER_REVERSE = SECOND[1:2]

MENDED = {
    "det/batched/4": SECOND,
    "det/scaled/8": SECOND,
    "lstsq/complex/0": ("jvp", *SECOND),
    "lstsq/batched/6": SECOND,
    "lu/batched/2": SECOND[:1],
    "lu/batched/6": ("hvp", "hvp.reverse_over_forward"),
    "lu/batched/8": ("hvp", "hvp.reverse_over_forward"),
    "lu/hard/0": SECOND[:1],
    "lu/hard/8": SECOND[:1],
    "lu_factor/batched/6": FORWARD_OVER_REVERSE,
    "lu_factor/complex/0": ("hvp", "hvp.reverse_over_forward"),
    "lu_factor/complex/6": ("hvp", "hvp.reverse_over_forward"),
    "pinv/complex/2": SECOND,
    "pinv/complex/4": SECOND,
    "pinv/hard/5": FORWARD_OVER_REVERSE,
    "pinv/hard/7": SECOND[:2],
    "pinv/scaled/8": FORWARD_OVER_REVERSE,
}
"""By case, what was above the limit."""

HEADER, CASES = grader.read(CORE)
BY_ID = {case["id"]: case for case in CASES}


@pytest.mark.parametrize("case", MENDED)
def test_what_was_above_the_limit_stays_below(case):
    functions = {
        name: function
        for name, function in vars(ours).items()
        if name.partition("__")[0] in grader.QUANTITIES
    }
    answer = grader.ask(BY_ID[case], functions)
    verdicts = {
        each.quantity: each.verdict for each in grader.grade(BY_ID[case], answer, HEADER["limit"])
    }
    assert {verdicts[quantity] for quantity in MENDED[case]} == {"right"}
