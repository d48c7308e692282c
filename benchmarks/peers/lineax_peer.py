"""lineax: linear solves with one right-hand side, through JAX."""

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.peers import jax_peer
from benchmarks.peers.process import Work
from strategies.measuring.case import Case

SOLVED = ("solve", "lstsq")
"""The operations that it has."""


def prepare(case: Case) -> Work:
    """The backward, and forward and backward, of a case; NotImplementedError if it is of another kind."""
    if case.operation not in SOLVED or case.batch or case.rhs != 1:
        raise NotImplementedError("lineax solves one system with one right-hand side")
    import lineax

    # The fastest that is right for the case: LU for a square system, QR for full column rank.
    solver = lineax.AutoLinearSolver(well_posed=True) if case.operation == "solve" else lineax.QR()

    def function(a: Any, b: Any) -> tuple[Any]:
        operator = lineax.MatrixLinearOperator(a)
        return (lineax.linear_solve(operator, b[:, 0], solver=solver).value[:, None],)

    return jax_peer.compiled(function, case)


@functools.cache
def differentiable(operation: str, *, full_rank: bool) -> Callable[..., tuple[Any, ...]]:
    """The solution of one system with any number of right-hand sides: by LU, QR, or for any rank SVD."""
    import lineax

    from strategies.oracle.adapters.lineax import solved

    return solved(
        lineax.LU() if operation == "solve" else lineax.QR() if full_rank else lineax.SVD()
    )
