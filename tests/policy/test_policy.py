import contextlib
import os
import subprocess
import sys
import warnings

import msgspec
import pytest
import torch
from by_hand import part_using, policy_cell, policy_of

from strategies import policy as policies
from strategies import registry
from strategies.errors import UnusableFileError
from strategies.files.documents import json_text
from strategies.policy import calibration, validators
from strategies.policy.calibration import Calibration
from strategies.policy.schema import Default
from strategies.testing.global_state import preserved

pytestmark = pytest.mark.usefixtures("configuration")

HERE = validators.here()


def names(operation, *, any_rank=False, device="cpu"):
    found = policies.candidates(operation, 8, 8, 1, 0, "float64", device, any_rank=any_rank)
    return [strategy.name for strategy in found]


def test_where_the_best_is_not_installed_the_next_best_is_used():
    known = policy_cell(8, somebody_elses=1, native=3)
    default = Default("somebody_elses", ("native",), 1.0, 1.0, 1, 0)
    with policies.use(policy_of(pinv=[known], full_rank=default)):
        assert names("pinv") == names("pinv", device="cuda") == ["native"]


def test_what_refuses_a_rank_is_followed_by_the_best_that_takes_any():
    full = policy_cell(8, triangular_solve=1, native=3)
    deficient = policy_cell(8, rank=2, svd_truncated_pinv=1)
    with policies.use(policy_of(pinv=[full, deficient])):
        assert names("pinv") == ["triangular_solve"]
        assert names("pinv", any_rank=True) == ["triangular_solve", "svd_truncated_pinv"]
    with policies.use(policy_of(pinv=[full])):
        assert names("pinv", any_rank=True) == ["triangular_solve", "qr_pinv"]


def test_what_was_never_measured_gets_the_simplest_stable_strategy():
    with policies.use(policy_of(pinv=[])):
        assert names("det") == ["triangular_solve"]
        assert names("lstsq", any_rank=True) == ["qr_pinv"]


def test_a_strategy_can_stand_for_auto_by_its_name_and_by_itself():
    for choice in ("explicit_inverse", registry.get("explicit_inverse")):
        with policies.use(choice):
            assert names("inv") == ["explicit_inverse"]


def test_a_file_that_is_no_policy_is_refused_where_it_is_named(tmp_path):
    with pytest.raises(UnusableFileError, match="nowhere"), policies.use(tmp_path / "nowhere.json"):
        pass
    with pytest.raises(TypeError, match="not int"), policies.use(5):
        pass


@pytest.mark.parametrize("bad", ["nowhere.json", "no_such_strategy"])
def test_a_bad_variable_is_told_once_and_the_shipped_policy_answers(monkeypatch, bad):
    monkeypatch.setenv("BACKWARD_STRATEGIES_USE", bad)
    with pytest.warns(RuntimeWarning, match=f"BACKWARD_STRATEGIES_USE={bad}: ") as caught:
        first = names("pinv")
    assert len(caught) == 1
    with warnings.catch_warnings(action="error"):
        assert names("pinv") == first
    with policies.use(policies.SHIPPED):
        assert names("pinv") == first


@pytest.mark.parametrize("content", [None, "{"])
def test_a_shipped_policy_that_is_damaged_is_done_without(monkeypatch, tmp_path, content):
    shipped = tmp_path / "policy.json"
    if content is not None:
        shipped.write_text(content)
    monkeypatch.setattr(policies, "SHIPPED", shipped)
    with pytest.warns(RuntimeWarning, match=r"policy\.json: "):
        assert names("inv") == ["triangular_solve"]


def calibrated(where=HERE, **threads):
    """Writes a calibration in which each strategy is used with a number of threads."""
    parts = (part_using(use, validators=where, threads=n) for use, n in threads.items())
    Calibration(parts=tuple(parts)).save(calibration.location(), parents=True)


def first():
    return names("inv")[0]


def test_a_calibration_goes_before_the_shipped_policy_and_what_is_named_before_both(
    configuration, monkeypatch
):
    calibrated(qr_pinv=1)
    assert first() == "qr_pinv"
    assert policies.active()[1].startswith(f"the calibration {configuration / 'policy.json'}")
    for choice, expected in (("shipped", "fused"), ("explicit_inverse", "explicit_inverse")):
        with policies.use(choice):
            assert first() == expected
        with monkeypatch.context() as patch:
            patch.setenv("BACKWARD_STRATEGIES_USE", choice)
            policies.refresh()
            assert first() == expected


@pytest.mark.parametrize(
    "differing", [{"cpu": "another"}, {"torch": "1.0"}, {"instruction_set": "AVX1"}]
)
def test_one_of_another_machine_is_told_once_and_the_shipped_policy_answers(differing):
    calibrated(msgspec.structs.replace(HERE, **differing), qr_pinv=1, batch_last=2)
    ((_, its),) = differing.items()
    with pytest.warns(RuntimeWarning, match=f"calibrated elsewhere: here is .*not {its}") as caught:
        assert first() == "fused"
    assert len(caught) == 1
    assert "backward-strategies calibrate" in str(caught[0].message)
    with warnings.catch_warnings(action="error"), threads(2):
        assert first() == "fused"
        assert names("det")


def test_one_that_cannot_be_read_is_told_once_and_the_shipped_policy_answers(configuration):
    configuration.mkdir()
    (configuration / "policy.json").write_text("{")
    with pytest.warns(RuntimeWarning, match=r"policy\.json: is not valid JSON") as caught:
        assert first() == "fused"
    assert len(caught) == 1


@contextlib.contextmanager
def threads(count):
    with preserved():
        torch.set_num_threads(count)
        yield


def ship(monkeypatch, tmp_path, **threads):
    """Ships a policy, measured on this machine, of the inverse of 8×8 matrices by numbers of threads."""
    machine = {"cpu": HERE.cpu, "instruction_set": HERE.instruction_set, "torch": HERE.torch}
    parts = (
        part_using(use, threads=count, machine={**machine, "name": use, "threads": count})
        for use, count in threads.items()
    )
    known = msgspec.structs.replace(
        policy_of(inv=[policy_cell(8, use="fused")]),
        provenance=({**machine, "name": "the first", "threads": 2},),
        others=tuple(parts),
    )
    path = tmp_path / "shipped.json"
    path.write_text(json_text(known))
    monkeypatch.setattr(policies, "SHIPPED", path)
    policies.refresh()


def firsts(*counts):
    found = []
    for count in counts:
        with threads(count):
            found.append(first())
    return found


def test_of_several_machines_the_nearest_answers_and_a_change_is_seen(monkeypatch, tmp_path):
    ship(monkeypatch, tmp_path, qr_pinv=1, batch_last=16)
    expected = ["qr_pinv", "fused", "batch_last"]
    assert firsts(1, 2, 16) == expected
    with policies.use("shipped"):
        assert firsts(1, 2, 16) == expected
    with policies.use(policies.SHIPPED), threads(16):
        assert first() == "batch_last"
        assert policies.active()[1].endswith(f"(batch_last, 16 threads, torch {torch.__version__})")
        assert policies.active() is policies.active()
    monkeypatch.setenv("BACKWARD_STRATEGIES_USE", str(policies.SHIPPED))
    policies.refresh()
    assert firsts(1, 2, 16) == expected


def test_a_calibration_is_over_the_machine_that_is_nearest(monkeypatch, tmp_path):
    ship(monkeypatch, tmp_path, qr_pinv=8, batch_last=1)
    calibrated(explicit_inverse=4)
    assert firsts(1, 2, 4, 8) == ["batch_last", "fused", "explicit_inverse", "qr_pinv"]
    with threads(4):
        assert "(4 threads), over the shipped policy (the first, 2" in policies.active()[1]


def test_the_nearest_number_of_threads_answers_and_a_change_is_seen(monkeypatch, tmp_path):
    ship(monkeypatch, tmp_path)
    calibrated(qr_pinv=1, explicit_inverse=8)
    assert firsts(1, 16, 8, 4, 1) == ["qr_pinv", *["explicit_inverse"] * 3, "qr_pinv"]
    # What is shipped was measured with two threads, and is the nearest to two.
    assert firsts(2) == ["fused"]


RANK = """
from strategies import policy
(first, *_) = policy.candidates("inv", 8, 8, 1, 0, "float64", "cpu", any_rank=False)
print(first.name, policy.active()[1])
"""


def test_all_processes_of_a_job_follow_the_same_file():
    calibrated(qr_pinv=1)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK],
            stdout=subprocess.PIPE,
            env={**environment, "RANK": str(rank)},
        )
        for rank in range(3)
    ]
    (said,) = {rank.communicate(timeout=120)[0] for rank in ranks}
    assert said.decode().startswith("qr_pinv the calibration")
