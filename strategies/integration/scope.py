"""What is in force in the whole process until it is undone, by name."""

import threading
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Self

_lock = threading.Lock()
_scopes: list["Scope"] = []
"""Those that are in force, of all kinds."""


class Scope:
    """Names that are in force; as a context manager, until the end of the block."""

    _noun: ClassVar[str]
    _in_force: ClassVar[Counter[str]]
    """How many scopes there are of each name."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        with _lock:
            _scopes.append(self)
            self._in_force.update(self.names)
            self._write()

    def _write(self) -> None:
        """Brings about, for its names, what is in force."""
        raise NotImplementedError

    @classmethod
    def holds(cls, name: str | None) -> bool:
        """Whether a name is in force; of None, whether any is."""
        return any(cls._in_force.values()) if name is None else bool(cls._in_force[name])

    def undo(self) -> None:
        """Gives back to PyTorch what no other scope still holds."""
        with _lock:
            if self in _scopes:
                _scopes.remove(self)
                self._in_force.subtract(self.names)
                self._write()

    @classmethod
    def undo_all(cls) -> None:
        """Undoes those of this kind that are in force."""
        for scope in [each for each in _scopes if isinstance(each, cls)]:
            scope.undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "in force" if self in _scopes else "undone"
        return f"<{self._noun} of {', '.join(self.names)}: {state}>"


def selected(noun: str, names: Iterable[str] | None, known: set[str]) -> list[str]:
    """The names that are meant, sorted: some, one, or by default all; ValueError if one is not known."""
    wanted = known if names is None else {names} if isinstance(names, str) else set(names)
    if unknown := sorted(wanted - known):
        raise ValueError(f"no {noun} {', '.join(unknown)}: there is {', '.join(sorted(known))}")
    return sorted(wanted)
