"""Programs that apply an inverse in their backward: the training step of each, as PyTorch runs it.

They import torch alone, and know nothing of strategies: what replaces torch's functions is put around
them. `benchmarks.training` measures them.

Half of the programs may be looked at when a policy is made: their cases may become cells of its grid. The
other half judge it, untouched. Every other program is of the one half and of the other, in the order
of their names, which was settled before any was timed; one that is added later is untouched.
"""

from __future__ import annotations

from benchmarks.programs import (
    elastic,
    elm,
    gauss_newton,
    glow,
    gp,
    guided_filter,
    kalman,
    koopa,
    koopman,
    mvdr,
    qp,
    rcwa,
    ridge,
    roma,
    slater,
    varpro,
    whitening,
    wpe,
)
from benchmarks.programs.program import Program

__all__ = ["PROGRAMS", "SEEN", "UNTOUCHED", "named"]

SEEN: tuple[Program, ...] = tuple(
    module.PROGRAM
    for module in (elastic, gauss_newton, gp, kalman, koopman, qp, ridge, slater, whitening)
)
"""The half whose cases a policy may rest on."""

UNTOUCHED: tuple[Program, ...] = tuple(
    module.PROGRAM for module in (elm, glow, guided_filter, koopa, mvdr, rcwa, roma, varpro, wpe)
)
"""The half that judges it."""

PROGRAMS = tuple(sorted((*SEEN, *UNTOUCHED), key=lambda program: program.name))


def named(name: str) -> Program:
    """The program of that name.

    Raises:
        LookupError: there is none.

    Example:
        >>> named("roma").title
        'Gaussian-process decoder of a matcher'
    """
    for program in PROGRAMS:
        if program.name == name:
            return program
    raise LookupError(f"no program {name}: there is {', '.join(each.name for each in PROGRAMS)}")
