"""What the process imports from which those of cells are forked: all that takes time and computes nothing.

Autograd imports torch's symbolic shapes at the first gradient, which takes a second, and Numba needs
another one to get ready for its first kernel.
"""

from __future__ import annotations

import contextlib

import numba.core.registry
import torch.fx.experimental.symbolic_shapes  # noqa: F401

import strategies.sweeps.cell  # noqa: F401

with contextlib.suppress(ImportError):
    import flint  # noqa: F401

numba.core.registry.cpu_target.typing_context.refresh()
numba.core.registry.cpu_target.target_context.refresh()
