import itertools

import pytest

import strategies
from benchmarks.steps import Step


def test_a_step_runs_either_way_and_gives_torch_back():
    suite = Step()
    names = [["torch", "auto"], ["gp"]]
    for params in itertools.product(*names):
        suite.setup(*params)
        assert strategies.is_replaced() == (params[0] == "auto")
        suite.time_step(*params)
        assert suite.track_peak_memory(*params) > 0
        suite.teardown(*params)
        assert not strategies.is_replaced()


@pytest.mark.parametrize("method", ["time_step", "track_peak_memory"])
def test_what_asv_reads_is_there(method):
    assert getattr(Step, method).benchmark_name == f"programs.{method}"
    assert getattr(Step, method).unit
    assert len(Step.params) == len(Step.param_names)
