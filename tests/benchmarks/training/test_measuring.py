from benchmarks.programs import named
from benchmarks.training import measuring, ways
from strategies.measuring.case import Case


def test_a_program_is_measured_in_every_way(tiny, monkeypatch):
    monkeypatch.setattr(ways, "best_strategy", lambda *_: "native")
    monkeypatch.setattr(ways, "MODELS", {})  # which has no sizes that are so small
    found = measuring.measured(named("gp"), "small", steps=3, budget=0.0)
    assert (found.program, found.size, found.tuned.strategy) == ("gp", "small", "native")
    assert len(found.torch.losses) == len(found.auto.losses) == 3
    assert found.difference < 1e-10
    assert 0 < found.forward + found.backward < 1
    cases = {choice.case: choice for choice in found.choices}
    # No case has words for solve_triangular.
    assert set(cases) == {"cholesky 10x10 float64 cpu"}
    assert all(choice.count == 1 and choice.regret >= 1 for choice in cases.values())


def test_the_calls_of_a_step_are_recorded(tiny):
    recording = measuring.recorded(named("elastic"), "small", 2)
    assert recording.workload().cases() == {Case("det", (3, 3), batch=6): 2}
