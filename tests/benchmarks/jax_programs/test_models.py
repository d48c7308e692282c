"""What JAX trains loses what PyTorch's programs lose."""

import pytest
import torch

from benchmarks.jax_programs import MODELS, model
from benchmarks.programs import named

pytest.importorskip("jax")

TINY = {
    "elm": {"samples": 40, "hidden": 6},
    "gp": {"points": 20},
    "slater": {"walkers": 20, "electrons": 3},
    "varpro": {"times": 40, "decays": 2, "curves": 3},
}


@pytest.mark.parametrize("name", MODELS)
def test_the_losses_are_those_of_the_program(name):
    work = model.work(MODELS[name], TINY[name])
    step = named(name).step(**TINY[name])
    due = [step().item() for _ in range(3)]
    assert len(set(due)) == 3
    assert [*map(float, work[model.LOSSES]())] == pytest.approx(due, rel=1e-6)
    assert work[model.LOSSES]() == work[model.LOSSES]()
    assert float(work[model.STEP]()[0]) == pytest.approx(due[1], rel=1e-6)


def test_random_numbers_stay_as_they_were():
    before = torch.random.get_rng_state()
    model.work(MODELS["gp"], TINY["gp"])
    assert torch.equal(torch.random.get_rng_state(), before)
