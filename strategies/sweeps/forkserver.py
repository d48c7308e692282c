"""What the process imports from which those of cells are forked: all that takes time and computes nothing.

Autograd imports torch's symbolic shapes at the first gradient, which takes a second.
"""

import contextlib

import torch.fx.experimental.symbolic_shapes  # noqa: F401

import strategies.sweeps.cell  # noqa: F401

with contextlib.suppress(ImportError):
    import flint  # noqa: F401
