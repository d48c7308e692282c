"""Derivatives of this package that once were above the limit of the oracle, each by its case."""

import pytest

from strategies.oracle import grader
from strategies.oracle.adapters import ours
from strategies.oracle.asking import CORE

SECOND = ("hvp", "hvp.forward_over_reverse", "hvp.reverse_over_forward")
FORWARD_OVER_REVERSE = SECOND[1:2]

MENDED = {
    "lstsq/complex/0": ("jvp", *SECOND),
    "lstsq/batched/6": SECOND,
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
