"""What a strategy takes to compute: memory, time, and devices nobody asked for."""

import statistics
import sys
import timeit
import tracemalloc
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from strategies import registry
from strategies.strategy import Strategy
from strategies.testing.checks import check, check_each, records, require, skip_native
from strategies.testing.problems import Problem, problem, problems
from strategies.testing.spy import TorchSpy, graph_of, tensors_in

_LONG = 2000
_THIN = 3
_NOT_ITS_OWN = "strategies.operations."


def _thin() -> Iterator[Problem]:
    for operation in records():
        # The P of lu is m×m by definition.
        if not operation.square and operation.name == operation.policy_operation:
            for shape in ((_LONG, _THIN), (_THIN, _LONG)):
                yield problem(operation.name, shape, torch.float32, operation.arity)


@check_each(lambda _: _thin())
def _no_square_of_the_long_side(strategy: Strategy, asked: Problem) -> None:
    """A thin matrix is not made into an m×m array; what NumPy allocates is seen, too."""
    skip_native(strategy, "which makes such arrays")
    limit = _LONG**2 // 4
    peak, (largest, made_by) = min(_peak_of(strategy, asked) for _ in range(3))
    made = f"makes an array of {largest:,} bytes in {made_by}"
    require(largest < limit, f"{made}: m×m of the long side, which is {_LONG}")
    message = f"NumPy and Python allocate {peak:,} bytes, as for m×m of the long side {_LONG}"
    require(peak < limit, message)


def _peak_of(strategy: Strategy, asked: Problem) -> tuple[int, tuple[int, str]]:
    """The most bytes that NumPy and Python held, which at first may be those of a compiler.

    And the largest tensor that a torch operation made, and which operation that was.
    """
    sizes = [(0, "")]

    def note(operation: str, result: Any) -> None:
        sizes.extend((each.untyped_storage().nbytes(), operation) for each in tensors_in(result))

    tracemalloc.start()
    try:
        with TorchSpy(note):
            asked.solved_by(strategy)
        return tracemalloc.get_traced_memory()[1], max(sizes, key=lambda size: size[0])
    finally:
        tracemalloc.stop()


class _Placed(TorchFunctionMode):
    """Collects the torch functions that were left to make a tensor on the default device.

    What operations make around the strategy is not its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        options = kwargs or {}
        if func is torch.autograd.grad:
            # It walks a graph without the modes of its caller: each node enters this one again.
            for node in graph_of(args):
                node.register_prehook(self._enter)
                node.register_hook(self._leave)
        elif func in _device_constructors() and options.get("device") is None:
            caller = sys._getframe(1)
            if not caller.f_globals.get("__name__", "").startswith(_NOT_ITS_OWN):
                self.found.add(f"torch.{func.__name__} in {caller.f_code.co_qualname}")
        return func(*args, **options)

    def _enter(self, _: Any) -> None:
        self.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self, *_: Any) -> None:
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]


def _problems() -> Iterator[Problem]:
    for operation in records():
        yield from problems(operation, [(5, 5)], [(5, 5), (6, 3), (3, 6)], [torch.float64])


@check_each(lambda _: _problems())
def _default_device(strategy: Strategy, asked: Problem) -> None:
    """Where the matrix is, everything else is: a default device of the caller's is not used."""
    asked.solved_by(strategy)  # may compile
    with _Placed() as placed:
        asked.solved_by(strategy)
        if asked.operation.name == "pinv":
            inverse = strategy.factor(asked.inputs[0].clone())
            inverse.apply(inverse.dense().mH)
            inverse.null_complement(inverse.apply_gram(inverse.dense()))
    made = ", ".join(sorted(placed.found))
    require(not made, f"makes a tensor without device=, on the default one: {made}")


@check
def _takes_something(strategy: Strategy) -> None:
    """There is an operation that the strategy does not refuse."""
    refused = []
    for asked in _problems():
        try:
            asked.solved_by(strategy)
        except Exception as error:  # noqa: BLE001 - what it is, another check tells
            refused.append(f"{asked}: {type(error).__name__}")
        else:
            return
    require(False, f"not one operation works on a well-conditioned matrix: {'; '.join(refused)}")


@check
def _time(strategy: Strategy) -> str:
    """Never fails: the report says where the strategy is slow."""
    slowest, note = 0.0, "no operation"
    reference = registry.get("triangular_solve")
    for asked in _problems():
        try:
            taken, expected = (_seconds(each, asked) for each in (strategy, reference))
        except Exception:  # noqa: BLE001, S112 - that is for other checks
            continue
        if taken / expected > slowest:
            slowest = taken / expected
            note = f"{asked}: {taken * 1e3:.2g} ms, {slowest:.2g} times triangular_solve's"
    return f"slowest beside triangular_solve, forward and backward: {note}"


def _seconds(strategy: Strategy, asked: Problem) -> float:
    return statistics.median(timeit.repeat(lambda: asked.solved_by(strategy), number=1, repeat=3))
