"""What holds for all tests."""

import torch

# pytest-xdist fills the cores with processes; threads within each only wait for one another.
torch.set_num_threads(1)
