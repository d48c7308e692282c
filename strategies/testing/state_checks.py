"""A strategy remembers nothing: equal calls give equal bits, whatever happens before, after or beside.

Nor does it hold anything of a call, or leave a tensor alive.
"""

import functools
import gc
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strategies.formulas.domains import GENERAL
from strategies.strategy import Strategy
from strategies.testing.checks import check, check_each, numbered, require, skip_native
from strategies.testing.problems import Problem, Tensors, of_inputs, one_each, problem, recorded
from strategies.testing.spy import TorchSpy

_CALLS = 30
_THREADS = 4
_DEEP = 4
_FOREIGN = ("torch", "numpy", "scipy")
"""Their objects have counters of their own."""


def _answers(strategy: Strategy, asked: Problem) -> Tensors:
    results, gradients = asked.solved_by(strategy)
    return (*results, *gradients)


def _require_same(found: Tensors, expected: Tensors, names: list[str], message: str) -> None:
    for name, value, due in zip(names, found, expected, strict=True):
        is_same = value.dtype == due.dtype and torch.equal(value, due)
        require(is_same, f"{name} {message}")


def _clones(tensors: Tensors) -> Tensors:
    return tuple(tensor.clone() for tensor in tensors)


@check_each(lambda _: one_each(dtype=torch.float32) + one_each(dtype=torch.complex128, batch=2))
def _determinism(strategy: Strategy, asked: Problem) -> None:
    """Equal calls give the same bits, often in a row."""
    skip_native(strategy, "whose LAPACK gelsy rounds differently from call to call")
    first = _clones(_answers(strategy, asked))
    for i in range(_CALLS if asked.inputs[0].ndim == 2 else 2):
        message = f"has other bits in call {i + 2} than in call 1"
        _require_same(_answers(strategy, asked), first, asked.names, message)


@check_each(lambda _: one_each(batch=2) + one_each(dtype=torch.complex64))
def _repeated_backward(strategy: Strategy, asked: Problem) -> None:
    """A backward leaves what forward saved as it was: a graph may be walked twice."""
    leaves, results = recorded(strategy, asked.operation, asked.inputs)

    def backward(factor: float) -> Tensors:
        G = tuple(factor * each for each in asked.cotangents)
        return torch.autograd.grad(results, leaves, G, retain_graph=True)

    first = _clones(backward(1.0))
    backward(-3.0)
    message = "is another when the same graph is walked again"
    _require_same(backward(1.0), first, asked.names[len(results) :], message)


@check_each(lambda _: one_each() + one_each(dtype=torch.complex64, batch=1))
def _graphs_at_once(strategy: Strategy, asked: Problem) -> None:
    """A backward has the factors of its own forward, whatever forwards came between."""
    alive = [asked, *(other for _, other in _mistakable(asked))]
    graphs = [recorded(strategy, asked.operation, one.inputs) for one in alive]
    for i, (one, graph) in enumerate(zip(alive, graphs, strict=True), 1):
        _require_right(one, *graph, f"graph {i} of {len(graphs)} at once: ")


@check_each(lambda _: one_each() + one_each(dtype=torch.complex64, batch=2))
def _no_state(strategy: Strategy, asked: Problem) -> None:
    """What was computed before must not matter, nor what comes after change it.

    The inputs that follow one another are chosen to be mistaken: other matrices of the same shape,
    of the same sum, norm, trace, first and last entry, or in the same memory; other right-hand
    sides or cotangents with the same matrix. Nor may writing to what came back matter.
    """
    skip_native(strategy, "whose LAPACK gelsy rounds differently from call to call")
    first = _answers(strategy, asked)
    kept = _clones(first)
    for what, other in _mistakable(asked):
        other.require_answers(*other.solved_by(strategy), f"after the same with {what}: ")
        _require_same(first, kept, asked.names, f"changed when another one, with {what}, came")
    # On purpose into tensors of the caller's, which are his to write to.
    for tensor in first:
        tensor.zero_()
    message = "is another once the first answers were overwritten by their owner"
    _require_same(_answers(strategy, asked), kept, asked.names, message)
    _require_reread(strategy, asked)


def _require_right(asked: Problem, leaves: Tensors, results: Tensors, where: str) -> None:
    """Require that a graph has the results and gives the gradients of a problem."""
    gradients = asked.operation.defined(torch.autograd.grad(results, leaves, asked.cotangents))
    asked.require_answers(tuple(result.detach() for result in results), gradients, where)


@functools.cache
def _mistakable(asked: Problem) -> list[tuple[str, Problem]]:
    A, *others = asked.inputs
    swapped = A.clone()
    # Two entries of the interior, off the diagonal.
    swapped[..., 1, 2], swapped[..., 2, 1] = A[..., 2, 1], A[..., 1, 2]
    shuffled = A.flatten(-2).clone()
    shuffled[..., 1:-1] = shuffled[..., 1:-1].flip(-1)
    domain = asked.operation.domain
    another = domain.member(numbered(tuple(A.shape), A.dtype, 51) + 2 * A)
    cases = [("another matrix", (another, *others))]
    if domain is GENERAL:
        cases.append(("two entries of A exchanged", (swapped, *others)))
        cases.append(("the inner entries of A reversed", (shuffled.view(A.shape) + 0, *others)))
    if others:
        cases.append(("another B", (A, numbered(tuple(others[0].shape), A.dtype, 52))))
    cases.append(("another cotangent", asked.inputs))
    return [(what, of_inputs(asked.operation, x, 53 + i)) for i, (what, x) in enumerate(cases)]


def _require_reread(strategy: Strategy, asked: Problem) -> None:
    """The same tensors, written to in between."""
    other = _mistakable(asked)[0][1]
    leaves = tuple(t.clone().requires_grad_() for t in asked.inputs)
    for now in (asked, other):
        with torch.no_grad():
            for leaf, value in zip(leaves, now.inputs, strict=True):
                leaf.copy_(value)
        results = now.operation.outputs(now.operation.function(*leaves, strategy=strategy))
        _require_right(now, leaves, results, "A overwritten in place: ")


@check_each(lambda _: [problem("inv", (5, 5)), problem("pinv", (6, 4)), problem("pinv", (2, 3, 5))])
def _factors_kept(strategy: Strategy, asked: Problem) -> None:
    """What `factor` returned stays as it is while others are factored."""
    F, other = asked.inputs[0], _mistakable(asked)[0][1].inputs[0]
    inverse = strategy.factor(F.clone())
    tensors, dense = _clones(tuple(inverse.tensors())), inverse.dense().clone()
    applied = inverse.apply(F).clone()
    strategy.factor(other.clone()).apply(F)
    found = (*inverse.tensors(), inverse.dense(), inverse.apply(F))
    names = [f"tensor {i} of the factors" for i in range(len(tensors))]
    names += ["dense()", "apply(F)"]
    message = "changed when another matrix was factored"
    _require_same(found, (*tensors, dense, applied), names, message)


def _yielding(seed: int) -> TorchSpy:
    """Lets other threads run between the torch operations of this one."""
    pauses = random.Random(seed)  # noqa: S311 - to vary, not to hide
    return TorchSpy(lambda *_: time.sleep(pauses.choice((0.0, 0.0, 1e-5, 1e-4))))


def _require_independence(
    strategy: Strategy, asked: Sequence[Problem], mode: Callable[[int], AbstractContextManager[Any]]
) -> None:
    start = threading.Barrier(len(asked))

    def run(i: int) -> Tensors:
        with mode(i):
            return _clones(_answers(strategy, asked[i]))

    def run_with_others(i: int) -> list[Tensors]:
        start.wait()
        return [run(i) for _ in range(2)]

    which = range(len(asked))
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(len(asked)) as many:
        alone = list(one.map(run, which))
        together = list(many.map(run_with_others, which))
    message = f"has other bits while {len(asked) - 1} other threads compute"
    for own, due, found in zip(asked, alone, together, strict=True):
        for answers in found:
            _require_same(answers, due, own.names, message)


@check_each(lambda _: one_each())
def _threads(strategy: Strategy, first: Problem) -> None:
    """Four threads with different inputs at once give what one gives, to the bit.

    The serial run is in a thread as well, since threads may have settings of their own.
    """
    skip_native(strategy, "whose LAPACK gelsy rounds differently from call to call")
    operation, shape = first.operation, tuple(first.inputs[0].shape)
    asked = [problem(operation.name, shape, k=operation.arity, seed=s) for s in range(_THREADS)]
    # Where torch's operations are seen, a strategy may compute in another way: it is asked twice.
    for mode in (lambda _: nullcontext(), _yielding):
        _require_independence(strategy, asked, mode)


@check
def _nothing_held(strategy: Strategy) -> None:
    """Other numbers in known shapes leave instance, classes and modules as they are, and no tensor."""
    _compute(strategy, 1)
    _compute(strategy, 2)
    before = dict(_held(strategy))
    with _new_tensors() as count:
        for _ in range(_CALLS):
            _compute(strategy, 2)
        left = count()
    after = dict(_held(strategy))
    names = before.keys() | after.keys()
    changed = sorted(name for name in names if before.get(name) != after.get(name))
    require(not changed, f"after other calls in known shapes, changed: {', '.join(changed)}")
    require(left < _CALLS, f"{_CALLS} calls of each operation leave {left} tensors behind")


def _compute(strategy: Strategy, seed: int) -> None:
    for asked in one_each(seed):
        with suppress(Exception):  # that is for other checks
            asked.solved_by(strategy)


@contextmanager
def _new_tensors() -> Iterator[Callable[[], int]]:
    """Gives a function that counts the tensors made since, and still alive."""

    def count() -> int:
        gc.collect()
        return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())

    gc.freeze()  # what there is already is neither collected nor listed
    try:
        yield count
    finally:
        gc.unfreeze()


def _held(strategy: Strategy) -> Iterator[tuple[str, object]]:
    """Every attribute where state could be, with what identifies its value."""
    kind = type(strategy)
    yield from _members(f"{kind.__name__}()", getattr(strategy, "__dict__", {}))
    for base in kind.__mro__:
        if not base.__module__.startswith(("strategies.", "abc", "builtins", "typing")):
            yield from _members(base.__name__, vars(base))
            module = sys.modules.get(base.__module__)
            if module is not None:
                yield from _members(base.__module__, vars(module))


def _members(owner: str, members: Any) -> Iterator[tuple[str, object]]:
    for name, value in list(members.items()):
        if not name.startswith("__") and not name.startswith("_abc_"):
            yield f"{owner}.{name}", _digest(value)


def _digest(value: Any, depth: int = 0) -> object:
    """Equal for equal values, and not holding them."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    if isinstance(value, Tensor):
        value = value.detach().cpu().resolve_conj().resolve_neg().numpy()
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, functools._lru_cache_wrapper):
        return id(value), value.cache_info().currsize
    if isinstance(value, types.ModuleType | type):
        return id(value)
    if depth > _DEEP:
        return type(value).__name__
    if isinstance(value, dict | list | tuple | set):
        items = value.items() if isinstance(value, dict) else value
        return type(value).__name__, tuple(_digest(item, depth + 1) for item in list(items))
    if isinstance(value, types.FunctionType):
        filled = (cell for cell in value.__closure__ or () if cell != types.CellType())
        contents = [cell.cell_contents for cell in filled]
        return id(value), _digest([*contents, value.__defaults__, vars(value)], depth + 1)
    if type(value).__module__.split(".")[0] in _FOREIGN:
        return id(value)
    return id(value), _digest(getattr(value, "__dict__", None), depth + 1)
