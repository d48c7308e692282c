"""Another library in a process of its own, which prepares what it is given and times it when asked.

Both processes time with the one clock, each its own calls, so that nothing of the other library or
of the pipe is in a sample. Between two questions a process waits for its pipe, which takes no
processor; the threads of its libraries stop spinning within `REST`.
"""

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from strategies.measuring.clock import Sampler, sampler

PATIENCE = 300.0
"""Seconds in which a library has to compile and warm up a case."""

REST = 0.1
"""Seconds between one process's work and the other's: idle threads of libraries spin for 50 ms."""

Arrays = tuple[np.ndarray[Any, Any], ...]

Work = dict[Hashable, Callable[[], Any]]
"""What can be timed, by name: of a case, by objective. Every call returns when all is ready.

What the first returns is compared with PyTorch's: gradients, of a case.
"""


class Peer(contextlib.AbstractContextManager["Peer"]):
    """The library of the module `benchmarks.peers.<name>_peer`, at work in its own process until exit."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        # Read when the libraries load, in the child; those of this process are loaded already.
        counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
        os.environ.update(dict.fromkeys(counts, str(threads)))
        self._start()

    def _start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._process = ProcessPoolExecutor(1, spawning, _load, (self.name,))
        self._id = self._process.submit(os.getpid)

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenProcessPool, ProcessLookupError):
            os.kill(self._id.result(), signal.SIGKILL)
        self._process.shutdown()

    def prepare(self, task: Any, limit: float = PATIENCE) -> Arrays:
        """Compiles and warms up a case, or what else its module takes; returns what is compared.

        NotImplementedError if the library cannot do it, TimeoutError if not within the limit, in seconds:
        the process has been started anew then.
        """
        return self._ask(_prepare, task, limit)

    def sampler(self, name: Hashable) -> Sampler:
        """What times one block of prepared work: see `strategies.measuring.clock.sampler`."""

        def sample() -> float:
            time.sleep(REST)
            seconds = self._ask(_sample, name)
            time.sleep(REST)
            return seconds

        return sample

    def _ask(self, question: Callable[[Any], Any], of: Any, limit: float | None = None) -> Any:
        try:
            return self._process.submit(question, of).result(limit)
        except TimeoutError:
            self.__exit__()
            self._start()
            raise TimeoutError(f"not ready after {limit:.0f} s") from None
        except BrokenProcessPool:
            raise RuntimeError(f"the process of {self.name} died of {of}") from None


# What follows runs in the process of the library.
_samplers: dict[Hashable, Sampler] = {}
_library: Any = None


def _load(name: str) -> None:
    global _library  # noqa: PLW0603 - a process has one
    # Ctrl-C reaches the whole group; the process that asks decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _library = importlib.import_module(f"benchmarks.peers.{name}_peer")


def _prepare(task: Any) -> Arrays:
    work: Work = _library.prepare(task)
    for name, call in work.items():
        _samplers[name] = sampler(call, time.perf_counter)
    return tuple(np.asarray(each) for each in next(iter(work.values()))())


def _sample(name: Hashable) -> float:
    return _samplers[name]()
