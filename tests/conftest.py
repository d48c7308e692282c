"""What holds for all tests."""

import os

import pytest
import torch

# Scripts, which run when they are imported; test_programs.py runs them.
collect_ignore = ["programs"]

# What "auto" is does not depend on who runs the tests.
os.environ["BACKWARD_STRATEGIES_CONFIG"] = os.devnull

if not torch.cuda.is_available():
    # Read when triton is imported, which is later: its kernels then run on the CPU, one by one.
    os.environ["TRITON_INTERPRET"] = "1"

# pytest-xdist fills the cores with processes; threads within each only wait for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_random_numbers_every_time():
    torch.manual_seed(0)


@pytest.fixture(
    params=[
        "cpu",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.cuda,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
            ],
        ),
    ]
)
def device(request):
    return request.param


@pytest.fixture
def configuration(monkeypatch, tmp_path):
    """The folder of a user who has calibrated nothing yet; "auto" is asked for the first time."""
    from strategies import policy

    folder = tmp_path / "configuration"
    monkeypatch.setenv("BACKWARD_STRATEGIES_CONFIG", str(folder))
    monkeypatch.delenv("BACKWARD_STRATEGIES_USE", raising=False)
    policy.refresh()
    yield folder
    policy.refresh()
