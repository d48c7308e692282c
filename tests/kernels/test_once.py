"""What a process loads once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from strategies.kernels.once import once


def test_threads_that_ask_at_once_get_what_one_of_them_has_loaded():
    barrier, calls = threading.Barrier(8), []

    def load():
        calls.append(1)
        time.sleep(0.05)
        return object()

    loaded = once(load)

    def ask(_):
        barrier.wait()
        return loaded()

    with ThreadPoolExecutor(8) as threads:
        found = {*threads.map(ask, range(8))}
    assert len(calls) == len(found) == 1
    loaded.cache_clear()
    assert loaded() not in found
