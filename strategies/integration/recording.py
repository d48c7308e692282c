"""`record`: which of the functions that `strategies.linalg` has a program calls, and how long they take.

A torch-function mode sees the calls of its thread: torch's functions under all their names, replaced or
not, also where they were looked up before. Functions of `strategies.linalg` become visible to modes
as long as something is recorded. On a CUDA device the clock waits for what was begun before.
"""

import contextlib
import functools
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.overrides import BaseTorchFunctionMode, handle_torch_function

from strategies import linalg
from strategies.integration import replacement
from strategies.integration.call_site import call_site, is_own
from strategies.integration.scope import Scope
from strategies.integration.tally import Key, Tally, now
from strategies.integration.workload import Call, Workload

_C: Any = torch._C


class Recording:
    """What has been recorded until now; `str` is a table.

    Attributes:
        program: the command line.
        is_running: it goes on.
    """

    def __init__(self) -> None:
        self.program = tuple(sys.argv)
        self._tallies = defaultdict[Key, Tally](lambda: Tally(lambda: self.is_running))
        self._began, self._ended, self.is_running = time.perf_counter(), 0.0, True

    def end(self) -> None:
        """Stops the clock."""
        self._ended, self.is_running = time.perf_counter(), False

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return (time.perf_counter() if self.is_running else self._ended) - self._began

    @property
    def calls(self) -> tuple[Call, ...]:
        """Equal calls in one place of the program as one, those that took longest first."""
        calls = [tally.as_call(key) for key, tally in self._tallies.items()]
        return tuple(sorted(calls, key=lambda call: -call.seconds))

    def workload(self) -> Workload:
        """All of it, as a file holds it."""
        from strategies.measuring.machine import describe

        return Workload(
            program=self.program,
            seconds=self.seconds,
            machine=msgspec.structs.asdict(describe()),
            calls=self.calls,
        )

    def save(self, path: str | Path) -> None:
        """Writes a file for `backward-strategies measure --workload`; UnusableFileError if it cannot."""
        self.workload().save(path)

    def __str__(self) -> str:
        return str(self.workload())


@contextlib.contextmanager
def record() -> Iterator[Recording]:
    """Records the calls of the functions that `strategies.linalg` has, within a `with` block.

    That is of the current thread, and not of what is compiled. Backwards are those within the block.

    Example:
        >>> import torch, strategies
        >>> with strategies.record() as recording:
        ...     inverse = strategies.linalg.inv(torch.eye(3))
        >>> recording.calls[0].case
        'inv 3x3 float32 cpu'
    """
    recording = Recording()
    with _Visible(_OURS), _Mode(recording):
        try:
            yield recording
        finally:
            recording.end()


class _Mode(BaseTorchFunctionMode):
    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording = recording
        self._written = _written()

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        options = kwargs or {}
        name = None if is_compiling() else self._written.get(func)
        if name is None or is_own(sys._getframe().f_back):
            return func(*args, **options)
        tensors = [each for each in (*args, *options.values()) if isinstance(each, Tensor)]
        if not tensors:
            return func(*args, **options)
        device = tensors[0].device
        begun = now(device)
        # By way of torch, from where a replaced function is not taken for a call of ours.
        result = super().__torch_function__(func, types, args, options)  # type: ignore[no-untyped-call]
        seconds = now(device) - begun
        shapes = tuple([each.shape for each in tensors])
        key = name, shapes, tensors[0].dtype, device, *call_site(sys._getframe())
        tally = self._recording._tallies[key]
        tally.count += 1
        tally.forward += seconds
        if tally.is_to_watch() and not _C._are_functorch_transforms_active():
            outputs = (result,) if isinstance(result, Tensor) else result
            tally.watch(device, tensors, outputs)
        return result


@functools.cache
def _written() -> dict[Callable[..., Any], str]:
    """How a program writes each function that a mode may be given; a replaced one equals torch's."""
    found: dict[Callable[..., Any], str] = {
        each.original: str(each) for each in replacement.functions()
    }
    return found | {seen: f"{linalg.__name__}.{name}" for name, seen in _visible().items()}


_OURS = {each.name: each.ours for each in replacement.functions()}


class _Visible(Scope):
    """Shows modes the calls of `strategies.linalg`, and not what these are made of."""

    _noun, _in_force = "recording", Counter()

    def _write(self) -> None:
        vars(linalg).update(_visible() if self.holds(None) else _OURS)


@functools.cache
def _visible() -> dict[str, Callable[..., Any]]:
    return {name: _overridable(function) for name, function in _OURS.items()}


def _overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, as a mode is given it; called by the mode, it is there for the next one."""

    @functools.wraps(function)
    def overridable(*arguments: Any, **options: Any) -> Any:
        if is_compiling() or not _C._is_torch_function_mode_enabled():
            return function(*arguments, **options)
        return handle_torch_function(overridable, (), *arguments, **options)

    return overridable
