"""pytest-benchmark's result files, as one record a case and strategy.

A benchmark counts if its parameters are those of the asv suites and its `extra_info` names the
operation; further columns in `extra_info` (error, peak_bytes, ...) are taken as they are.
"""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

from strategies.selection.asv_files import PARAMETERS, Record, parse_shape
from strategies.selection.files import UnusableFileError

_TAKEN_FROM_EXTRA_INFO = (
    "error",
    "peak_bytes",
    "speedup_over_native",
    "speedup_over_native_low",
    "speedup_over_native_high",
    "torch",
    "threads",
    "gpu",
)


def is_pytest_benchmark(content: Any) -> bool:
    """Whether a parsed JSON file says of itself that pytest-benchmark wrote it."""
    return isinstance(content, dict) and {"benchmarks", "machine_info", "version"} <= content.keys()


def pytest_benchmark_records(path: Path, content: dict[str, Any]) -> list[Record]:
    """One record for every benchmark of a case in a pytest-benchmark file.

    Raises:
        UnusableFileError: the content is not as pytest-benchmark 4 and 5 write it.
    """
    try:
        # `version` is that of pytest-benchmark, "5.3.1".
        major = int(content["version"].split(".")[0])
        if not 4 <= major <= 5:
            raise UnusableFileError(path, f"was written by pytest-benchmark {major}, not by 4 or 5")
        provenance = _provenance(content)
        return [
            record | provenance | extra
            for benchmark in content["benchmarks"]
            if (record := _record(benchmark))
            for extra in [_extra(benchmark)]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UnusableFileError):
            raise
        raise UnusableFileError(
            path, f"is not a pytest-benchmark file ({type(error).__name__}: {error})"
        ) from error


def _record(benchmark: dict[str, Any]) -> Record | None:
    params, extra = benchmark.get("params") or {}, benchmark["extra_info"]
    if "operation" not in extra or not set(PARAMETERS[:5]) <= params.keys():
        return None
    stats = benchmark["stats"]
    return {
        "operation": extra["operation"],
        "is_peer": False,
        "strategy": str(params["strategy"]),
        **parse_shape(params["shape"]),
        "batch": int(params["batch"]),
        "dtype": str(params["dtype"]),
        "device": str(params["device"]),
        "log10_cond": math.nan,
        "benchmark": benchmark["fullname"],
        "parameters": ", ".join(str(params[name]) for name in PARAMETERS[:5]),
        "status": "ok",
        "backward_seconds": float(stats["median"]),
        "backward_seconds_low": float(stats["q1"]),
        "backward_seconds_high": float(stats["q3"]),
    }


def _extra(benchmark: dict[str, Any]) -> Record:
    extra = benchmark["extra_info"]
    return {name: extra[name] for name in _TAKEN_FROM_EXTRA_INFO if name in extra}


def _provenance(content: dict[str, Any]) -> Record:
    machine = content["machine_info"]
    cpu = machine.get("cpu") or {}
    return {
        "commit": content["commit_info"]["id"],
        "machine": machine["node"],
        "cpu": cpu.get("brand_raw", machine.get("processor", "")),
        "threads": str(machine.get("threads", cpu.get("count", ""))),
        "torch": str(machine.get("torch", "")),
        "gpu": str(machine.get("gpu", "")),
        "started_at": datetime.fromisoformat(content["datetime"]).timestamp() * 1000,
    }
