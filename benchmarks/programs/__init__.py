"""Programs that apply an inverse in their backward: the training step of each, as PyTorch runs it.

They import torch alone, and know nothing of strategies: what replaces torch's functions is put around
them. `benchmarks.training` measures them.

Half of the programs may be looked at when a policy is made: their cases may become cells of its grid. The
other half judge it, untouched. Every other program is of the one half and of the other, in the order
of their names, which was settled before any was timed; one that is added later is untouched.
"""

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.programs.program import Program

PROGRAMS: tuple[Program, ...] = tuple(
    import_module(f"{__name__}.{file.name}").program
    for file in iter_modules(__path__)
    if file.name != "program"
)
"""By name."""


def named(name: str) -> Program:
    """The program of that name; LookupError if there is none."""
    for program in PROGRAMS:
        if program.name == name:
            return program
    raise LookupError(f"no program {name}: there is {', '.join(each.name for each in PROGRAMS)}")


_SEEN = "elastic", "gauss_newton", "gp", "kalman", "koopman", "qp", "ridge", "slater", "whitening"

SEEN = tuple(map(named, _SEEN))
"""The half whose cases a policy may rest on."""

UNTOUCHED = tuple(program for program in PROGRAMS if program not in SEEN)
"""The half that judges it."""
