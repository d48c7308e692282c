"""The set that comes with the package: what is in it, and that it can be made again."""

import json
import math
from fractions import Fraction

import pytest

from strategies import operations
from strategies.oracle import records
from strategies.oracle.asking import CORE
from strategies.oracle.draws import KINDS
from strategies.oracle.grader import QUANTITIES, _mantissa, lines, read


@pytest.fixture(scope="module")
def cases():
    return read(CORE)[1]


def parts_of(cases):
    return [each for case in cases for parts in case["results"].values() for each in parts]


def test_it_is_small(cases):
    assert CORE.stat().st_size <= 250_000
    assert len(cases) >= 500


def test_every_operation_has_every_kind_that_it_can_have(cases):
    found = {(case["operation"], case["kind"]) for case in cases}
    for name in operations.names():
        cannot_have = {"deficient"} if operations.get(name).needs_full_rank else set()
        assert {kind for kind in KINDS if (name, kind) in found} == set(KINDS) - cannot_have


def test_every_number_is_certified_beyond_double_precision(cases):
    assert max(part["radius"] for part in parts_of(cases)) < -60


def test_most_cases_have_all_quantities(cases):
    for quantity in QUANTITIES:
        assert sum(quantity in case["results"] for case in cases) > 0.85 * len(cases)


def test_what_is_right_has_a_digit(cases):
    limit = read(CORE)[0]["limit"]
    for part in parts_of(cases):
        numbers = [float.fromhex(each) for each in part["numbers"].split()]
        size = len(numbers) // len(part["divisors"])
        for i, divisor in enumerate(part["divisors"]):
            norm = math.hypot(*numbers[i * size : (i + 1) * size])
            assert norm == 0 or limit * float.fromhex(divisor) <= 0.11 * norm


def test_it_is_made_again_to_the_byte():
    kept = lines(CORE)[1:]
    # The first cases of fewer are those of more.
    again = [record for record, _ in zip(records.records(1, 0), range(3), strict=False)]
    assert records.text(again).splitlines() == kept[: len(again)]


@pytest.mark.slow
def test_all_of_it_is_made_again_to_the_byte():
    header, *_ = lines(CORE)
    seed, count = (json.loads(header)[name] for name in ("seed", "cases"))
    kept = [record for record in records.records(count, seed) if record is not None]
    made = records.text([records.Header(seed=seed, cases=count), *kept])
    assert made.splitlines() == lines(CORE)


def test_the_schema_describes_a_case(cases):
    described = records.schema()["$defs"]["CaseRecord"]
    assert set(described["required"]) <= set(cases[0]) <= set(described["properties"])


@pytest.mark.parametrize(
    ("high", "low", "exponent"),
    [(1.0, 2.0**-70, 0), (-0.1, 1e-18, 7), (0.5, 0.0, -1500), (3.0, -(2.0**-72), 0)],
)
def test_numbers_keep_their_digits(high, low, exponent):
    mantissa, power = _mantissa(records.number(high, low, exponent))
    exact = (Fraction(high) + Fraction(low)) * Fraction(2) ** exponent
    assert abs(mantissa * Fraction(2) ** power - exact) <= abs(exact) / 2**73
