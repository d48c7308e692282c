"""Rows of every kind that a figure can be drawn from."""

import itertools

import pandas as pd
import pytest

from strategies.selection.rows import tidy

STRATEGIES = {"native": 1.0, "triangular_solve": 3.0, "qr_pinv": 2.9, "somebody_elses": 0.5}
SHAPES = [(16, 16, 0), (256, 256, 0), (512, 16, 0), (4096, 16, 0), (4, 4, 1000)]


def record(strategy, speedup, m, n, batch, **others):
    seconds = 1e-9 * m * n * n * max(batch, 1) / speedup
    return {
        "operation": "pinv",
        "m": m,
        "n": n,
        "batch": batch,
        "dtype": "float64",
        "device": "cpu",
        "strategy": strategy,
        "status": "ok",
        "backward_seconds": seconds,
        "forward_backward_seconds": 1.5 * seconds,
        "speedup_over_native": speedup,
        "speedup_over_native_low": speedup / 1.05,
        "speedup_over_native_high": speedup * 1.05,
        "error": 1e-15 * speedup,
        "peak_bytes": 16.0 * m * (m if strategy == "native" else n),
        "machine": "reference-machine",
        "cpu": "Reference CPU",
        "threads": "2",
        "torch": "2.13.0",
        "commit": "0123456789abcdef",
        "source": "run.json",
        "started_at": 1_700_000_000_000,
    } | others


@pytest.fixture
def rows():
    records = [
        record(strategy, speedup, *shape)
        for (strategy, speedup), shape in itertools.product(STRATEGIES.items(), SHAPES)
    ]
    timings = dict.fromkeys(
        ["backward_seconds", "forward_backward_seconds", "speedup_over_native", "peak_bytes"]
    )
    records += [
        record(s, v, 32, 8, 0, log10_cond=c, error=1e-16 * 10**c * v, **timings)
        for (s, v), c in itertools.product(STRATEGIES.items(), (1, 5, 9))
    ]
    records += [
        record(s, v, *shape, 0, log10_cond=1, error=1e-16 * v, **timings)
        for (s, v), shape in itertools.product(STRATEGIES.items(), ((64, 16), (256, 64)))
    ]
    records += [
        record(s, v, 20, 6, 0, log10_cond=1.5, matrix=matrix, error=1e-16 * v, **timings)
        for (s, v), matrix in itertools.product(STRATEGIES.items(), ("kahan", "graded_rows"))
    ]
    beside = {"native": 1.0, "qr_pinv": 3.0, "jax": 2.0}
    records += [record(s, v, 4096, 16, 0, is_peer=True) for s, v in beside.items()]
    return tidy(pd.DataFrame(records))
