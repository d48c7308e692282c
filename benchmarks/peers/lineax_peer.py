"""lineax: linear solves with one right-hand side, through JAX."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import jax_peer
from benchmarks.peers.worker import Work
from strategies.measuring import Case


def prepare(case: Case) -> Work:
    """Lineax's backward, and forward and backward, of a case.

    Raises:
        NotImplementedError: lineax solves systems and least squares with one column, unbatched.
    """
    if case.operation not in ("solve", "lstsq") or case.batch or case.rhs != 1:
        raise NotImplementedError("lineax solves one system with one right-hand side")
    import jax
    import lineax

    jax.config.update("jax_enable_x64", True)
    # The fastest that is right for the case: LU for a square system, QR for full column rank.
    well_posed = lineax.AutoLinearSolver(well_posed=True)
    solver = well_posed if case.operation == "solve" else lineax.QR()

    def function(a: Any, b: Any) -> Any:
        operator = lineax.MatrixLinearOperator(a)
        return lineax.linear_solve(operator, b[:, 0], solver=solver).value[:, None]

    return jax_peer.compiled(function, case)
