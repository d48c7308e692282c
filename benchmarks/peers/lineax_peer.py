"""lineax: linear solves with one right-hand side, through JAX."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import jax_peer
from benchmarks.peers.process import Work
from strategies import operations
from strategies.measuring.case import Case


def prepare(case: Case) -> Work:
    """The backward, and forward and backward, of a case by lineax.

    Raises:
        NotImplementedError: lineax solves systems and least squares with one column, unbatched.
    """
    record = operations.get(case.operation)
    if record.arity != 2 or case.batch or case.rhs != 1:
        raise NotImplementedError("lineax solves one system with one right-hand side")
    import jax
    import lineax

    jax.config.update("jax_enable_x64", True)
    # The fastest that is right for the case: LU for a square system, QR for full column rank.
    solver = lineax.AutoLinearSolver(well_posed=True) if record.square else lineax.QR()

    def function(a: Any, b: Any) -> Any:
        operator = lineax.MatrixLinearOperator(a)
        return lineax.linear_solve(operator, b[:, 0], solver=solver).value[:, None]

    return jax_peer.compiled(function, case)
