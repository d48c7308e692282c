"""asv's result files, as one record a case and strategy.

asv keeps `results/<machine>/<commit>-<environment>.json`. Every benchmark in it, for example
`lu.Single.time_backward`, has a flat list of values in product order of its parameters, where NaN
says *skipped* and null says *failed or timed out*. asv's own reader takes the file apart; this
module puts together what the benchmarks of one module say of the same case.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.results import Results
from asv.util import UserError, load_json

from strategies.accuracy import gallery
from strategies.selection.files import UnusableFileError

Record = dict[str, Any]

QUANTITIES = {
    "time_backward": "backward_seconds",
    "time_forward_backward": "forward_backward_seconds",
    "track_speedup_over_native": "speedup_over_native",
    "track_gradient_error": "error",
    "track_test_ratio": "test_ratio",
    "track_peak_memory": "peak_bytes",
}
"""The benchmark methods that are read, and the column that each one fills.

The first of them that was measured decides a record's status."""

PARAMETERS = ("strategy", "shape", "batch", "dtype", "device", "log10_cond")
"""What the benchmarks' parameters mean; suites that do not vary conditioning leave out the last."""

OPERATION_OF_MODULE = {"lu": "lu_factor"}
"""The suites that are not named after their operation."""

_WITH_SPREAD = ("backward_seconds", "forward_backward_seconds", "speedup_over_native")


def read_asv_file(path: Path, benchmarks: dict[str, Any] | None = None) -> list[Record]:
    """One record for every case and strategy that the file holds.

    Args:
        path: a result file, its `machine.json` beside it.
        benchmarks: asv's descriptions of the benchmarks (`load_descriptions`); with them, results
            of an outdated benchmark version are left out, as asv does, and time-outs are told
            from failures.

    Raises:
        UnusableFileError: not a result file that the installed asv understands.
    """
    try:
        machine = load_json(str(path.with_name("machine.json")), api_version=Machine.api_version)
        results = Results.load(str(path), machine_name=machine["machine"])
        records = _merge(results, benchmarks or {})
    except UserError as error:
        reason = str(error).replace(f"{path}", "").strip().splitlines()[0]
        raise UnusableFileError(path, f"is not a usable asv result file: {reason}") from error
    except OSError as error:
        raise UnusableFileError(path, f"cannot be read ({error.strerror})") from error
    except (AttributeError, IndexError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise UnusableFileError(
            path, f"is not an asv result file ({type(error).__name__}: {error})"
        ) from error
    provenance = _provenance(results, machine)
    return [record | provenance for record in records]


def load_descriptions(folder: Path) -> dict[str, Any] | None:
    """The content of asv's `benchmarks.json`; None if the folder has none.

    Raises:
        UnusableFileError: there is one, and it cannot be used.
    """
    path = folder / "benchmarks.json"
    if not path.exists():
        return None
    try:
        descriptions: dict[str, Any] = load_json(str(path), api_version=Benchmarks.api_version)
    except (UserError, TypeError, ValueError) as error:
        raise UnusableFileError(path, f"is not asv's list of benchmarks: {error}") from error
    return descriptions


def _merge(results: Results, benchmarks: dict[str, Any]) -> list[Record]:
    records: dict[tuple[Any, ...], Record] = {}
    for name in sorted(results.get_all_result_keys(), key=_order_of_quantity):
        *modules, kind, method = name.split(".")
        description = benchmarks.get(name, {})
        if method not in QUANTITIES or _is_outdated(results, name, description):
            continue
        suite = {"operation": OPERATION_OF_MODULE.get(modules[-1], modules[-1])}
        suite["is_peer"] = modules[0] == "peers"
        for combination, status, quantity in _values(results, name, description):
            case = suite | _case(name, combination)
            where = {"benchmark": ".".join([*modules, kind]), "parameters": _text(combination)}
            record = records.setdefault(tuple(case.values()), case | where | {"status": status})
            record.update(quantity)
    return list(records.values())


def _text(combination: tuple[Any, ...]) -> str:
    return ", ".join(map(str, combination))


def _order_of_quantity(name: str) -> int:
    method = name.rsplit(".", 1)[-1]
    return list(QUANTITIES).index(method) if method in QUANTITIES else len(QUANTITIES)


def _is_outdated(results: Results, name: str, description: dict[str, Any]) -> bool:
    recorded = results.benchmark_version.get(name)
    return recorded is not None and recorded != description.get("version", recorded)


def _values(
    results: Results, name: str, description: dict[str, Any]
) -> Iterator[tuple[tuple[Any, ...], str, Record]]:
    """Every combination of parameters with its status and, where it is ok, its quantities."""
    axes = results.get_result_params(name)
    values = results.get_result_value(name, axes)
    stats = results.get_result_stats(name, axes) or [None] * len(values)
    combinations = itertools.product(*([ast.literal_eval(text) for text in axis] for axis in axes))
    column = QUANTITIES[name.rsplit(".", 1)[-1]]
    started_at = results.started_at.get(name)
    # asv does not say which of the two a null was, but a cell that timed out took all its time.
    lost = values.count(None) * description.get("timeout", math.inf)
    null = "timeout" if (results.duration.get(name) or 0) >= lost else "failed"
    for combination, value, stat in zip(combinations, values, stats, strict=True):
        if value is None:
            yield combination, null, {}
        elif math.isnan(value):
            yield combination, "n/a", {}
        else:
            spread = _spread(column, value, stat) if stat and column in _WITH_SPREAD else {}
            yield combination, "ok", {column: value, "started_at": started_at, **spread}


def _spread(column: str, median: float, stats: dict[str, float]) -> Record:
    """The ends of a 95 % interval of the median, from the quartiles that asv keeps.

    Those of a box plot's notch, median ± 1.57 IQR / √n (McGill, Tukey & Larsen, The American
    Statistician 32, 1978), for each side by itself and on a logarithmic scale, as times are skewed
    and positive. asv's own interval spans many orders of magnitude where the samples are few.
    """
    widening = 2 * 1.57 / math.sqrt(stats["repeat"])
    return {
        f"{column}_low": median * (stats["q_25"] / median) ** widening,
        f"{column}_high": median * (stats["q_75"] / median) ** widening,
    }


def _case(name: str, combination: tuple[Any, ...]) -> Record:
    """The case and strategy that a combination of parameters stands for."""
    try:
        named = dict(zip(PARAMETERS[: len(combination)], combination, strict=True))
        shape, _, matrix = named["shape"].partition(" matrix=")
        log10_cond = float(named.get("log10_cond", math.nan))
        if matrix:
            sizes = parse_shape(shape)
            log10_cond = _gallery_log10_cond(matrix, (sizes["m"], sizes["n"]), named["dtype"])
        return {
            "strategy": str(named["strategy"]),
            **parse_shape(shape),
            "matrix": matrix,
            "batch": int(named["batch"]),
            "dtype": str(named["dtype"]),
            "device": str(named["device"]),
            "log10_cond": log10_cond,
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} has parameters {combination}, not {PARAMETERS}") from error


@functools.cache
def _gallery_log10_cond(name: str, shape: tuple[int, int], dtype: str) -> float:
    """What the gallery knows of its matrix. Its cells are never without a condition number."""
    return math.log10(gallery.make(name, shape, getattr(torch, dtype)).condition)


def parse_shape(text: str) -> dict[str, int | None]:
    """The sizes in a shape as the suites write it.

    Example:
        >>> parse_shape("8192x64 k=16")
        {'m': 8192, 'n': 64, 'rhs': 16, 'rank': None}

    Raises:
        ValueError: not such a shape.
    """
    match = re.fullmatch(r"(\d+)x(\d+)( k=\d+)?( rank=\d+)?", text)
    if match is None:
        raise ValueError(f"{text!r} is not a shape; one is written 4096x32, or 4096x32 k=16 rank=8")
    m, n, rhs, rank = match.groups()
    return {
        "m": int(m),
        "n": int(n),
        "rhs": int(rhs.partition("=")[2]) if rhs else 1,
        "rank": int(rank.partition("=")[2]) if rank else None,
    }


def _provenance(results: Results, machine: dict[str, str]) -> Record:
    """Where the numbers come from. Paths, which asv records as `python`, are left out."""
    recorded = {**machine, **results.params}
    return {
        "commit": results.commit_hash,
        "machine": recorded["machine"],
        "cpu": recorded.get("cpu", ""),
        "gpu": recorded.get("gpu", ""),
        "threads": recorded.get("threads", recorded.get("num_cpu", "")),
        "torch": recorded.get("torch", ""),
    }
