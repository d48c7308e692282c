"""What holds for all tests."""

import pytest
import torch

# pytest-xdist fills the cores with processes; threads within each only wait for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_random_numbers_every_time():
    torch.manual_seed(0)
