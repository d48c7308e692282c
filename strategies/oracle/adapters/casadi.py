"""CasADi: real matrices in double precision, one at a time, as graphs of matrices (MX).

Second derivatives are by forward over reverse mode.
"""

from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np

Arrays = Sequence[np.ndarray[Any, Any]]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cholesky": lambda A: casadi.chol(A).T,
    "det": casadi.det,
    "inv": casadi.inv,
    "pinv": casadi.pinv,
    "solve": casadi.solve,
}
"""Each with one output."""


def _prepared(operation: str, inputs: Arrays) -> tuple[list[Any], Any]:
    """Symbols and the result."""
    if operation not in FUNCTIONS or inputs[0].ndim != 2 or inputs[0].dtype != np.float64:
        raise NotImplementedError
    x = [casadi.MX.sym(f"x{i}", *each.shape) for i, each in enumerate(inputs)]
    return x, FUNCTIONS[operation](*x)


def value(operation: str, inputs: Arrays) -> Any:
    x, result = _prepared(operation, inputs)
    return [_evaluated(x, result, inputs)]


def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
    x, result = _prepared(operation, inputs)
    return [_evaluated(x, bar, inputs) for bar in _bars(x, result, cotangents)]


def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
    x, result = _prepared(operation, inputs)
    return [_evaluated(x, _moved(x, result, tangents), inputs)]


def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
    x, result = _prepared(operation, inputs)
    return [_evaluated(x, _moved(x, bar, tangents), inputs) for bar in _bars(x, result, cotangents)]


def _bars(x: list[Any], result: Any, cotangents: Arrays) -> list[Any]:
    return [casadi.jtimes(result, each, casadi.DM(cotangents[0]), True) for each in x]


def _moved(x: list[Any], result: Any, tangents: Arrays) -> Any:
    pairs = zip(x, tangents, strict=True)
    return sum(casadi.jtimes(result, each, casadi.DM(t)) for each, t in pairs)


def _evaluated(x: list[Any], expression: Any, inputs: Arrays) -> np.ndarray[Any, Any]:
    return np.asarray(casadi.Function("f", x, [expression])(*inputs))


def version() -> str:
    return f"CasADi {casadi.__version__}"
