"""What is in force in the whole process until it is undone, by name."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar, Self

__all__ = ["Scope", "selected"]

_lock = threading.Lock()


class Scope:
    """Names that are in force; as a context manager, until the end of the block.

    Args:
        names: which.
        in_force: how many scopes there are of each name.
        write: brings about, for some names, what is in force.

    Attributes:
        names: which.
        noun: what it is called.
    """

    noun: ClassVar[str]

    def __init__(
        self,
        names: Iterable[str],
        in_force: Counter[str],
        write: Callable[[Iterable[str]], None],
    ) -> None:
        self.names = tuple(names)
        self._in_force, self._write, self._is_undone = in_force, write, False
        with _lock:
            in_force.update(self.names)
            write(self.names)

    def undo(self) -> None:
        """Gives back to PyTorch what no other scope still holds."""
        with _lock:
            if not self._is_undone:
                self._is_undone = True
                self._in_force.subtract(self.names)
                self._write(self.names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "undone" if self._is_undone else "in force"
        return f"<{self.noun} of {', '.join(self.names)}: {state}>"


def selected(noun: str, names: Iterable[str] | None, known: set[str]) -> list[str]:
    """The names that are meant, sorted: some, one, or by default all.

    Raises:
        ValueError: one is not known.

    Example:
        >>> selected("function", "inv", {"det", "inv"})
        ['inv']
    """
    wanted = known if names is None else {names} if isinstance(names, str) else set(names)
    if unknown := sorted(wanted - known):
        raise ValueError(f"no {noun} {', '.join(unknown)}: there is {', '.join(sorted(known))}")
    return sorted(wanted)
