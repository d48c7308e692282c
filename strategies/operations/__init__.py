"""One record an operation: every module here defines some, and the functions that they describe.

An operation is added by such a module and its formula. What goes over operations, benchmarks, policies,
figures and tests alike, asks `names`, `measured` and `get`.
"""

import contextlib
import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from strategies.autograd.aten import AtenCalls
from strategies.operations.record import Operation

__all__ = ["Operation", "aten_calls", "get", "measured", "modules", "names", "registered"]


def names() -> tuple[str, ...]:
    """The names of all operations.

    Example:
        >>> "pinv" in names()
        True
    """
    return tuple(_records())


def measured() -> tuple[str, ...]:
    """The names of the operations that have measured cells of their own.

    Example:
        >>> "det" in measured(), "slogdet" in measured()
        (True, False)
    """
    return tuple(name for name, record in _records().items() if record.policy_operation == name)


def get(name: str) -> Operation:
    """The record of an operation.

    Raises:
        ValueError: there is none; the message lists the names that are close.

    Example:
        >>> get("solve").arity
        2
    """
    try:
        return _records()[name]
    except KeyError:
        close = difflib.get_close_matches(name, names()) or names()
        raise ValueError(
            f"no measured operation is named {name!r}; there is {', '.join(close)}"
        ) from None


@contextlib.contextmanager
def registered(record: Operation) -> Iterator[Operation]:
    """Adds an operation within a `with` block.

    Raises:
        ValueError: there is an operation of that name.
    """
    if record.name in names():
        raise ValueError(f"there is an operation named {record.name!r} already")
    _records()[record.name] = record
    try:
        yield record
    finally:
        del _records()[record.name]


@functools.cache
def modules() -> tuple[ModuleType, ...]:
    """The modules that define operations."""
    found = (
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    )
    return tuple(module for module in found if hasattr(module, "RECORDS"))


def aten_calls() -> Iterator[AtenCalls]:
    """The calls of PyTorch's own operators that the fast paths compute."""
    return (calls for module in modules() for calls in getattr(module, "ATEN", ()))


@functools.cache
def _records() -> dict[str, Operation]:
    return {record.name: record for module in modules() for record in module.RECORDS}
