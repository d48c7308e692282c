"""Random calls beside torch's own."""

import sys
from pathlib import Path

import pytest
import torch
from fuzz import DIFFERENCES, check, draw

from strategies import linalg
from tests.process import run

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
CALLS = 200


@pytest.mark.timeout(900)  # where kernels have to be compiled first
def test_no_call_deviates_from_torch_in_a_way_that_is_not_documented():
    found = [(number, check(draw(0, number))[1]) for number in range(CALLS)]
    said = [f"--seed 0 --only {number}: {each}" for number, rest in found for each in rest]
    assert said == []


@pytest.mark.slow
def test_neither_does_one_of_thousands_nor_does_one_crash():
    command = sys.executable, "-m", "tests.linalg.fuzz", "--calls", 4000, "--seed", 1
    done = run(*command, timeout=None, cwd=PAGE.parents[1])
    assert done.returncode == 0, done.stdout[-5000:]


def test_the_differences_are_those_of_the_page():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert rows[2:] == list(DIFFERENCES)


def _changing(A, strategy):
    A.detach().mul_(2)
    return torch.linalg.inv(A / 2)


FAULTS = {
    "values": lambda A, strategy: torch.linalg.inv(A) * (1 + 1e-3),
    "gradient": lambda A, strategy: torch.linalg.inv(A).detach() + 0 * A,
    "dtype": lambda A, strategy: torch.linalg.inv(A).to(A.dtype.to_complex()),
    "shape": lambda A, strategy: torch.linalg.inv(A).unsqueeze(0),
    "error": lambda A, strategy: torch.linalg.pinv(A),
    "mutated": _changing,
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_are_seen(kind, monkeypatch):
    calls = [call for number in range(CALLS) if (call := draw(0, number)).operation == "inv"]
    monkeypatch.setattr(linalg, "inv", FAULTS[kind])
    assert kind in {each.kind for call in calls for each in check(call)[1]}
