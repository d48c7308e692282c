"""lineax, differentiated by JAX: `solve` by LU, `lstsq` by an SVD, which takes any rank."""

import runpy
from pathlib import Path
from typing import Any

import jax
import lineax


def solved(solver: Any) -> Any:
    def solve(A: Any, B: Any) -> tuple[Any]:
        operator = lineax.MatrixLinearOperator(A)

        def of_column(column: Any) -> Any:
            return lineax.linear_solve(operator, column, solver=solver).value

        return (jax.vmap(of_column, in_axes=1, out_axes=1)(B),)

    def of_any(A: Any, B: Any) -> tuple[Any]:
        return jax.vmap(solve)(A, B) if A.ndim == 3 else solve(A, B)

    return of_any


def version() -> str:
    return f"lineax {lineax.__version__}"


_jax = runpy.run_path(str(Path(__file__).with_name("jax.py")))
globals().update(_jax["derivatives"]({"solve": solved(lineax.LU()), "lstsq": solved(lineax.SVD())}))
