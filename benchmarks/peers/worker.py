"""A peer in a process of its own, which prepares cases and times blocks of calls when asked.

Both processes time with the one clock, each its own calls, so that nothing of the other library or
of the pipe is in a sample. Between two questions a process waits for its pipe, which takes no
processor; the threads of its libraries stop spinning within `REST`.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np

from strategies.measuring import Case, sampler

REST = 0.1
"""Seconds between one process's work and the other's: idle threads of libraries spin for 50 ms."""

Arrays = tuple[np.ndarray[Any, Any], ...]


@dataclass(frozen=True)
class Work:
    """What can be timed of a case; every call returns the gradients, when they are ready."""

    backward: Callable[[], Any]
    forward_backward: Callable[[], Any]


class Peer:
    """A library at work in its own process; a context manager that ends it.

    Attributes:
        name: of the module `benchmarks.peers.<name>_peer`.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        # Read when the libraries load, in the child; those of this process are loaded already.
        counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
        os.environ.update(dict.fromkeys(counts, str(threads)))
        self._start()

    def _start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, there = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(self.name, there), daemon=True)
        self._process.start()
        there.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._pipe.close()
        self._process.join(timeout=1)
        self._process.kill()
        self._process.join()

    def prepare(self, case: Case, limit: float = math.inf) -> Arrays:
        """Compiles and warms up a case, and returns its gradients.

        Args:
            case: what to compute.
            limit: seconds to wait.

        Raises:
            NotImplementedError: the library cannot do it.
            TimeoutError: not within the limit; the process has been started anew.
        """
        gradients: Arrays = self._ask("prepare", case, limit)
        return gradients

    def sampler(
        self, objective: str, left: Callable[[], float] = lambda: math.inf
    ) -> Callable[[], float]:
        """A callable that times one block, in seconds per call: see `measuring.sampler`.

        Args:
            objective: "backward" or "forward_backward".
            left: the seconds that are left; the callable raises TimeoutError when none are.
        """

        def sample() -> float:
            time.sleep(REST)
            seconds: float = self._ask("sample", objective, left())
            time.sleep(REST)
            return seconds

        return sample

    def _ask(self, question: str, argument: Any, limit: float) -> Any:
        self._pipe.send((question, argument))
        try:
            if not self._pipe.poll(None if math.isinf(limit) else max(limit, 0)):
                self._stop()
                self._start()
                raise TimeoutError("out of time")
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(
                f"the process of {self.name} died in {question} {argument}"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(name: str, pipe: Connection) -> None:
    # Ctrl-C reaches the whole group; the process that asks decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    peer = importlib.import_module(f"benchmarks.peers.{name}_peer")
    samplers: dict[str, Callable[[], float]] = {}
    while True:
        try:
            question, argument = pipe.recv()
        except EOFError:
            return
        try:
            if question == "prepare":
                work = peer.prepare(argument)
                samplers = {
                    objective: sampler(getattr(work, objective), time.perf_counter)
                    for objective in ("backward", "forward_backward")
                }
                pipe.send(tuple(np.asarray(gradient) for gradient in work.backward()))
            else:
                pipe.send(samplers[argument]())
        except Exception as error:  # noqa: BLE001 - it is the asking process's to judge
            pipe.send(error if isinstance(error, NotImplementedError) else RuntimeError(f"{error}"))
