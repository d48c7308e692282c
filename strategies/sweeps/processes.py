"""Processes for cells, forked from one that has imported everything and computed nothing.

To import torch takes longer than to measure a small cell, and what has computed, or touched CUDA, must not
be forked.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, Self

_CONTEXT = multiprocessing.get_context("forkserver")
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)

_PRELOADED = ["strategies.sweeps.cell", "torch.fx.experimental.symbolic_shapes", "flint"]
"""All that takes time to import; of these autograd imports the second at the first gradient."""


class Stop:
    """Within its `with` block, signals that ask to stop are noted, and only this process hears them.

    Ctrl-C, SIGTERM before a job ends, SIGUSR2 before its time is up: `signal` is the last of them.
    """

    signal: int | None = None

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, signal.SIG_IGN) for each in _STOPS}
        _CONTEXT.set_forkserver_preload(_PRELOADED)
        forkserver.ensure_running()  # it inherits that they are ignored
        for each in _STOPS:
            signal.signal(each, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = number


class Child:
    """A process that calls `target(pipe, *arguments)`, and lives as long as the `with` block at most."""

    _POLL = 0.5

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._receiver, sender = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=target, args=(sender, *arguments), daemon=True)
        self._began = time.monotonic()
        self._process.start()
        sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._receiver.close()
        self._process.close()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def messages(self) -> Iterator[Any]:
        """What it sends, and None now and then while it is silent, until it has ended."""
        while True:
            if self._receiver not in wait([self._receiver, self._process.sentinel], self._POLL):
                if self._process.exitcode is not None and not self._receiver.poll():
                    return
                yield None
                continue
            try:
                yield self._receiver.recv()
            except (EOFError, OSError):
                self._process.join()
                return

    def ending(self) -> str:
        code = self._process.exitcode or 0
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"
