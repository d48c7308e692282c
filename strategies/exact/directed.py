"""A problem with a direction: its formulas return derivatives along it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strategies.exact.balls import Matrix
from strategies.exact.dual import Dual
from strategies.exact.perturbed import crossed
from strategies.exact.problem import Problem


@dataclass(frozen=True)
class Directed:
    """A problem whose inputs are dual numbers, whose cotangents are constants.

    The last cotangents of `problem` are the tangents, one for each input; all else is as it has them.
    With `keeps_rank`, A moves along matrices of its rank: a tangent that leaves them, as one does that was
    rounded, is replaced by one that agrees with it in as many rows and columns.
    """

    problem: Problem
    keeps_rank: bool

    @property
    def operands(self) -> list[Matrix]:
        """Inputs with tangents, then cotangents."""
        count = len(self.problem.inputs)
        held = self.problem.operands
        inputs, cotangents, tangents = held[:count], held[count:-count], held[-count:]
        moving = [*map(Dual, inputs, tangents)]
        if self.keeps_rank and (profile := self.problem.profile) is not None:
            moving[0] = crossed(moving[0], *profile)
        return [*moving, *cotangents]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)


def along(
    formula: Callable[[Any], tuple[Matrix, ...]], *, keeps_rank: bool
) -> Callable[[Problem], tuple[Matrix, ...]]:
    """Return the formula of the derivatives, of a result or of gradients; it takes what `Directed` does."""

    def derivative(problem: Problem) -> tuple[Matrix, ...]:
        found = formula(Directed(problem, keeps_rank))
        return tuple(part.tangent if isinstance(part, Dual) else part * 0 for part in found)

    return derivative
