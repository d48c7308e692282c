"""What a process loads once, whichever of its threads asks first."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def once(function: Callable[[], Value]) -> Any:
    """`functools.cache` of a function without arguments, which no two threads compute at a time.

    Example:
        >>> once(lambda: print("loaded"))()
        loaded
    """
    computed = functools.cache(function)
    lock = threading.RLock()

    @functools.wraps(function)
    def computed_alone() -> Value:
        with lock:
            return computed()

    # A value that is there is found without the lock.
    found = functools.cache(computed_alone)
    clear = found.cache_clear

    def cache_clear() -> None:
        computed.cache_clear()
        clear()

    found.cache_clear = cache_clear  # type: ignore[method-assign]
    return found
