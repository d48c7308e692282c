"""Tells asv what else its results depend on: `python -m benchmarks.machine`.

The entries are added to those of `asv machine`, and from then on kept with every result.
"""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from typing import Any

import torch


def description() -> dict[str, str]:
    """Versions, libraries and settings that times depend on, as text.

    Example:
        >>> sorted(description())
        ['blas', 'gpu', 'tf32', 'threads', 'torch']
    """
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "blas": blas.group(1) if blas else "unknown",
        "gpu": ", ".join(gpus),
        "tf32": "on" if torch.backends.cuda.matmul.allow_tf32 else "off",
    }


def provenance() -> dict[str, Any]:
    """Where and when something is measured: what rows of results keep of a run."""
    from asv.machine import Machine

    asked = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    known = {**Machine.get_defaults(), **description()}
    kept = {key: known[key] for key in ("machine", "cpu", "gpu", "threads", "torch", "blas")}
    return {"commit": commit, **kept, "started_at": datetime.now(UTC).timestamp() * 1000}


def main() -> None:
    """Adds the description to asv's entry of this machine."""
    from asv.machine import Machine, MachineCollection

    name = Machine.get_unique_machine_name()
    entry = {**Machine.get_defaults(), **description(), "machine": name}
    MachineCollection.save(name, entry)
    print(f"{name}: " + ", ".join(f"{key} {value or 'none'}" for key, value in entry.items()))


if __name__ == "__main__":
    main()
