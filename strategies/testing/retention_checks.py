"""What a strategy leaves behind: nothing that it holds, and no tensor that is alive."""

import contextlib
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor

from strategies.strategy import Strategy
from strategies.testing.checks import check, require
from strategies.testing.problems import one_each

_CALLS = 30
_DEEP = 4
_FOREIGN = ("torch", "numpy", "scipy")
"""Their objects have counters of their own."""


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
        with contextlib.suppress(Exception):  # that is for other checks
            asked.solved_by(strategy)


@contextlib.contextmanager
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
        contents = (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
        return id(value), _digest([*contents, value.__defaults__, vars(value)], depth + 1)
    if type(value).__module__.split(".")[0] in _FOREIGN:
        return id(value)
    return id(value), _digest(getattr(value, "__dict__", None), depth + 1)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
