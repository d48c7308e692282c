"""Some of the programs once more, in JAX: short ones that draw the same numbers and train by Adam.

JAX is imported where one is made, in a process of its own (`benchmarks.peers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.jax_programs import elm, gp, slater, varpro
from benchmarks.jax_programs.model import Model

__all__ = ["MODELS"]

MODELS: Mapping[str, Callable[..., Model]] = {
    module.__name__.rpartition(".")[2]: module.make for module in (elm, gp, slater, varpro)
}
"""By the names of the programs."""
