"""What strategy="auto" uses for a call, and on what evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from strategies import operations, policy
from strategies.autograd.choice import policy_key
from strategies.kernels.cpu import library
from strategies.policy.schema import LIMIT, Cell, Evidence, Policy, PolicyKey


@dataclass(frozen=True)
class Explanation:
    """Why "auto" uses what it does; `str` says it in words.

    Attributes:
        key: operation, m, n, columns of B, batch, dtype and device.
        tried: the strategies that "auto" tries one after the other, until one does not refuse the input.
        source: what they come from: a policy file, or a strategy that was named.
        cells: the measured cases that answered, the nearest first; empty where none was measured.
        stability: the evidence by strategy, of the operation whose measurements answer.
        objective: what the policy makes small.
        machines: where it was measured.
    """

    key: PolicyKey
    tried: tuple[str, ...]
    source: str
    cells: tuple[Cell, ...] = ()
    stability: Mapping[str, Evidence] = field(default_factory=dict)
    objective: str = ""
    machines: tuple[str, ...] = ()

    def __str__(self) -> str:
        operation, *sizes, dtype, device = self.key
        first, *then = self.tried
        lines = [f'{operation} of {_sizes(*sizes)}, {dtype}, {device}: "auto" is {first}']
        lines += [f"  if that refuses the input: {name}" for name in then]
        lines.append(f"  by {self.source}")
        if (reason := library.missing()) and self.key[-1] == "cpu":
            lines.append(f"  there are no compiled kernels, {reason}: times may be others")
        lines += [f"  fastest by {self.objective} where measured:"] if self.cells else []
        lines += [f"    {_in_words(cell)}" for cell in self.cells]
        if not self.cells and self.objective:
            lines.append("  nothing near was measured for this dtype and device")
        if self.stability:
            lines.append(f"  stability ratios in hard cases (limit {LIMIT:.0f}):")
            lines += [f"    {_judged(name, each)}" for name, each in self.stability.items()]
        lines += [f"  measured on {machine}" for machine in self.machines]
        return "\n".join(lines)


def explain(operation: str, A: Tensor, *rhs: Tensor) -> Explanation:
    """What `strategy="auto"` uses for a call of an operation with A, (..., m, n), and B where it takes one.

    It computes nothing, so it cannot tell whether the first strategy will refuse the input for its
    rank, and the next be used.

    Raises:
        ValueError: there is no such operation, or A is no batch of matrices.

    Example:
        >>> import torch, strategies
        >>> print(strategies.explain("solve", torch.eye(3), torch.ones(3, 2)).key)
        ('solve', 3, 3, 2, 0, 'float32', 'cpu')
    """
    record = operations.get(operation)
    if A.ndim < 2:
        raise ValueError(f"{operation} takes matrices, not shape {tuple(A.shape)}")
    return explain_key(policy_key(record.name, A, *rhs))


def explain_key(key: PolicyKey) -> Explanation:
    """The same for sizes alone."""
    record = operations.get(key[0])
    asked: PolicyKey = (record.policy_operation, *key[1:])
    tried = policy.candidates(*asked, any_rank=record.falls_back)
    chosen, source = policy.active(key[-1])
    in_order = tuple(strategy.name for strategy in tried)
    if not isinstance(chosen, Policy):
        return Explanation(key, in_order, source)
    names = (f"{run['name']}: {run.get('cpu', '')}" for run in chosen.provenance)
    return Explanation(
        *(key, in_order, source),
        cells=tuple(chosen.nearest(asked)),
        stability=chosen.of(record.policy_operation).stability,
        objective=str(chosen.criteria.get("objective", "")),
        machines=tuple(dict.fromkeys(names)),
    )


def _sizes(m: int, n: int, rhs: int, batch: int) -> str:
    return (f"{batch} of " if batch else "") + f"{m}x{n}" + (f" k={rhs}" if rhs != 1 else "")


def _in_words(cell: Cell) -> str:
    times = ", ".join(f"{name} {cell.times[name]:.2f}×" for name in cell.names)
    return f"{_sizes(cell.m, cell.n, cell.rhs, cell.batch)}: {times}"


def _judged(name: str, found: Evidence) -> str:
    verdict = "stable" if found.is_stable else "unstable"
    where = f"; worst in {found.case}" if found.case else ""
    judged = f"{found.judged} judged, {found.refused} refused"
    return f"{name}: {verdict}, at most {found.worst_in_words} ({judged}{where})"
