import pytest

from strategies import operations
from strategies.measuring.case import Case
from strategies.selection import draws
from strategies.selection.draws import draw_cases


def test_the_seed_determines_the_cases():
    first, same, other = (draw_cases(20, "cpu", seed) for seed in (3, 3, 4))
    assert first == same != other
    assert draw_cases(5, "cpu", 3) == first[:5]


def test_every_operation_has_its_share_and_no_case_is_too_large():
    cases = draw_cases(10 * len(operations.measured()), "cpu", 0)
    drawn = [case.operation for case in cases]
    shares = {drawn.count(name) for name in operations.measured()}
    assert len(shares) == 1
    assert all(case.work <= draws.LARGEST_WORK for case in cases)


def test_some_cases_are_batches_some_deficient_some_ill_conditioned():
    cases = draw_cases(300, "cpu", 0)
    assert 100 < sum(case.batch > 0 for case in cases) < 200
    assert any(case.rank is not None for case in cases)
    assert max(case.log10_cond or 0 for case in cases) > 10


@pytest.mark.parametrize("seed", [0, 1])
def test_a_case_is_the_same_after_it_was_written(seed):
    cases = draw_cases(50, "cpu", seed)
    assert [Case.parse(str(case)) for case in cases] == cases
