"""Whether a strategy computes now, in this thread."""

import threading


class _Depth(threading.local):
    value = 0


computing = _Depth()
"""How many calls of strategies this thread is in."""


def is_computing() -> bool:
    """Whether this is called by a strategy, at whatever depth.

    Example:
        >>> is_computing()
        False
    """
    return computing.value > 0
