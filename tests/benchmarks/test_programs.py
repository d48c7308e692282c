"""The programs know torch alone, repeat themselves, and lose the same whoever applies the inverses."""

import ast
import sys
from pathlib import Path

import pytest
import torch

import benchmarks.programs
import strategies
from benchmarks.factor_programs import ALGEBRA
from benchmarks.peers import jax_program_peer
from benchmarks.programs import PROGRAMS, SEEN, UNTOUCHED, named
from strategies.testing.global_state import preserved

FOLDER = Path(benchmarks.programs.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
TINY = {
    "elastic": {"cells": 2},
    "elm": {"samples": 40, "hidden": 6},
    "gauss_newton": {"batch": 8, "variables": 3, "measurements": 8},
    "glow": {"images": 2, "channels": 4, "side": 4, "steps": 2, "hidden": 4},
    "gp": {"points": 20},
    "guided_filter": {"images": 1, "side": 16},
    "kalman": {"batch": 4, "states": 3, "seen": 2, "times": 3},
    "koopa": {"batch": 3, "segments": 4, "length": 8, "dimensions": 8},
    "koopman": {"batch": 2, "times": 10, "dimensions": 6},
    "mvdr": {"batch": 1, "channels": 3, "frequencies": 9, "frames": 20, "hidden": 8},
    "qp": {"batch": 3, "variables": 6},
    "rcwa": {"orders": 3, "pixels": 32},
    "ridge": {"tasks": 2, "features": 8, "embedding": 8},
    "roma": {"batch": 2, "side": 4, "features": 8, "dimensions": 8},
    "slater": {"walkers": 20, "electrons": 3},
    "varpro": {"times": 40, "decays": 2, "curves": 3},
    "whitening": {"images": 64, "features": 8, "embedding": 8, "piece": 32},
    "wpe": {"batch": 1, "channels": 2, "taps": 2, "frequencies": 5, "frames": 20},
}
STEPS = 3

every = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


def losses(program, steps=STEPS, **options):
    step = program.step(**TINY[program.name], **options)
    return [step().item() for _ in range(steps)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_program_imports_torch_and_what_programs_share(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    known = sys.stdlib_module_names | {"torch"}
    foreign = {name for name in names if name.partition(".")[0] not in known}
    assert foreign <= {"benchmarks.programs", "benchmarks.programs.program"}


@every
def test_its_steps_repeat_up_to_the_order_of_sums_and_train(program):
    # A BLAS of several threads may add in another order each time.
    first = losses(program)
    assert losses(program) == pytest.approx(first, rel=program.same)
    assert len(set(first)) == STEPS


def require_the_same_by_strategies(program, steps, **tolerances):
    by_torch = losses(program, steps)
    with strategies.replace_torch(), strategies.record() as recording:
        by_strategies = losses(program, steps)
    assert recording.calls
    assert all(f"{program.name}.py" in call.at for call in recording.calls)
    assert by_strategies == pytest.approx(by_torch, **tolerances)


@every
def test_its_losses_are_the_same_by_strategies(program):
    steps = 1 if program.differs else STEPS
    require_the_same_by_strategies(program, steps, rel=program.same)


# The first has other losses, and the others name single precision.
@pytest.mark.parametrize("name", sorted({*TINY} - {"elastic", "mvdr", "wpe"}))
def test_in_double_precision_they_are_to_eight_digits(name):
    with preserved():
        torch.set_default_dtype(torch.float64)
        require_the_same_by_strategies(named(name), 15, rel=1e-8, abs=0)


def test_losses_that_are_the_same_are_not_those_of_torch_itself():
    program = named("elm")
    by_torch = losses(program)
    with strategies.replace_torch(), strategies.use("svd_truncated_pinv"):
        assert losses(program) != by_torch


@pytest.mark.parametrize("name", ALGEBRA)
def test_its_losses_are_the_same_by_a_factor(name):
    program = named(name)
    assert losses(program, algebra=ALGEBRA[name]) == pytest.approx(
        losses(program), rel=program.same
    )


@pytest.mark.parametrize("name", jax_program_peer.MODELS)
def test_its_losses_are_the_same_in_jax(name):
    pytest.importorskip("jax")
    before = torch.random.get_rng_state()
    work = jax_program_peer.prepare((name, TINY[name]))
    assert torch.equal(torch.random.get_rng_state(), before)
    due, found = losses(named(name)), work[jax_program_peer.LOSSES]
    assert [*map(float, found())] == pytest.approx(due, rel=1e-6)
    assert found() == found()
    assert float(work[jax_program_peer.STEP]()[0]) == pytest.approx(due[1], rel=1e-6)


def test_the_body_stays_flat_by_pytorch_and_recovers_by_strategies():
    program = named("elastic")
    flat, right = program.step(cells=2), program.step(cells=2)
    by_torch = [flat().item() for _ in range(60)]
    with strategies.replace_torch():
        by_strategies = [right().item() for _ in range(60)]
    assert by_torch[-1] > 0.8 * by_torch[0]
    assert 0 <= by_strategies[-1] < 0.05 * by_torch[-1]


@every
def test_it_says_what_it_is(program):
    assert program.title
    assert program.source
    assert program.description.endswith(".")
    assert set(program.sizes) == {"small", "full"}


def test_every_file_is_a_program_of_one_half():
    stems = {path.stem for path in FILES} - {"__init__", "program"}
    assert [program.name for program in PROGRAMS] == sorted(stems) == sorted(TINY)
    assert not {each.name for each in SEEN} & {each.name for each in UNTOUCHED}


def test_a_step_leaves_the_random_numbers_as_they_were():
    before = torch.random.get_rng_state()
    named("gp").step(points=5)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_unknown_program_is_refused():
    with pytest.raises(LookupError, match="no program bert: there is elastic, elm"):
        named("bert")
