"""The list of the wrong strategies, the sound one that most of them spoil, and how that is written."""

import re

from strategies.builtin.triangular_solve import TriangularSolve
from strategies.formulas import det, lstsq, lu, pinv, solve
from strategies.strategy import Strategy

ZOO: dict[type[Strategy], tuple[str, ...]] = {}
"""The names of checks each of which catches it."""


def caught_by(*checks):
    def register(kind):
        kind.name = re.sub("(?<!^)([A-Z])", r"_\1", kind.__name__).lower()
        ZOO[kind] = checks
        return kind

    return register


class Sound(TriangularSolve):
    """Nothing is wrong; there is a method of its own to spoil for every operation."""

    name = "sound"

    def pinv_forward(self, matrix, *, rtol=None, atol=None):
        inverse = self.factor(matrix, rtol=rtol, atol=atol)
        return inverse.dense(), inverse

    def inv_forward(self, matrix):
        inverse = self.factor_square(matrix)
        return inverse.dense(), inverse

    def solve_forward(self, matrix, rhs):
        inverse = self.factor_square(matrix)
        return inverse.apply(rhs), inverse

    def lstsq_forward(self, matrix, rhs, *, rtol=None):
        inverse = self.factor(matrix, rtol=rtol)
        return inverse.apply(rhs), inverse

    def pinv_backward(self, saved, cotangent):
        return pinv.backward(saved.inverse, saved.matrix, cotangent)

    def inv_backward(self, saved, cotangent):
        return solve.inv_backward(saved.inverse, cotangent)

    def solve_backward(self, saved, cotangent, *, need_matrix=True):
        return solve.backward(saved.inverse, saved.result, cotangent, need_matrix=need_matrix)

    def lu_backward(self, factors, cotangent):
        gradient = lu.backward(self.factor_triangular, factors.LU, cotangent)
        return lu.permute_rows(gradient, factors.inverse_order)

    def det_backward(self, factors, scale):
        return scale[..., None, None] * det.inverse_adjoint(self.factor_triangular, *factors)

    def lstsq_backward(self, saved, cotangent, *, need_matrix=True):
        A, B, X = saved.matrix, saved.rhs, saved.result
        return lstsq.backward(saved.inverse, A, B, X, cotangent, need_matrix=need_matrix)


def spoils(method, *checks, of=Sound, name=""):
    """A strategy with another result of one method: what the function makes of the right one.

    After the result the function is given what the method is given. The strategy is named as the function
    is, or by another name.
    """

    def register(function):
        def spoiled(self, *arguments, **options):
            right = getattr(of, method)(self, *arguments, **options)
            return function(right, *arguments, **options)

        members = {method: spoiled, "__module__": function.__module__}
        return caught_by(*checks)(type(name or function.__name__, (of,), members))

    return register
