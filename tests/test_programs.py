"""Programs that are not edited compute by `"auto"` what they compute by torch."""

import runpy
from pathlib import Path

import pytest
import torch

import strategies

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))

RELATIVE = 1e-8
"""The programs print losses in double precision, after up to 15 steps that pass errors on."""


def numbers(program, capsys):
    runpy.run_path(str(program), run_name="__main__")
    return [float(word) for word in capsys.readouterr().out.split()]


@pytest.fixture(autouse=True)
def the_default_dtype_stays():
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_the_same_numbers(program, capsys):
    by_torch = numbers(program, capsys)
    with strategies.replace_torch(), strategies.record() as recording:
        by_strategies = numbers(program, capsys)
    assert len(by_torch) > 5
    assert by_strategies == pytest.approx(by_torch, rel=RELATIVE, abs=0)
    assert recording.calls
    assert all(program.name in call.at for call in recording.calls)


def test_numbers_that_are_the_same_are_not_those_of_torch_itself(capsys):
    (elm,) = (program for program in PROGRAMS if program.stem == "elm")
    by_torch = numbers(elm, capsys)
    with strategies.replace_torch(), strategies.use("svd_truncated_pinv"):
        assert numbers(elm, capsys) != by_torch
