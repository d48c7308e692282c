"""Exceptions that a program does not catch, told as the interpreter tells them.

The interpreter would show the frames of this package above those of the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from strategies.integration.call_site import is_own

__all__ = ["caught", "tell"]


def caught(call: Callable[[], object]) -> BaseException | None:
    """Returns what a call raises, without the frames of this package that lead to it.

    Raises:
        SystemExit: the call raises it, which has no traceback to show.
    """
    try:
        call()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - Ctrl-C is told, too
        return error.with_traceback(_foreign(error.__traceback__))
    return None


def tell(error: BaseException) -> None:
    """Shows an exception by `sys.excepthook`, which then is silent when the interpreter exits by it.

    Where the hook fails, both exceptions are shown.
    """
    hook = sys.excepthook
    failure = caught(lambda: hook(type(error), error, error.__traceback__))
    if failure is not None:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)

    def others(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        if value is not error:
            hook(kind, value, traceback)

    sys.excepthook = others


def _foreign(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and is_own(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback
