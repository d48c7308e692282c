"""Compile what comes with a wheel: `python -m strategies.kernels.cpu.shipping`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from strategies.kernels import extension
from strategies.kernels.cpu import compilation

_COMPILE_ALL = "import strategies; strategies.warmup()"


def ship() -> None:
    """Put code for `compilation.BASELINE` in the place of this package where it is looked for.

    Raises:
        NotImplementedError: this machine is no x86-64, and that code would be of no use on it.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise NotImplementedError(
            f"a wheel carries kernels for x86-64, not for {platform.machine()}: "
            "build it without them, by `pip wheel --no-deps .`"
        )
    shutil.rmtree(compilation.SHIPPED, ignore_errors=True)
    name, features = compilation.BASELINE
    with tempfile.TemporaryDirectory() as cache:
        target = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
        environment = os.environ | target | {"BACKWARD_STRATEGIES_CACHE": cache}
        subprocess.run([sys.executable, "-c", _COMPILE_ALL], env=environment, check=True)
        shutil.copytree(Path(cache) / "kernels", compilation.SHIPPED)
        if (lanes := extension.folder(Path(cache))).is_dir():
            shutil.copytree(lanes, compilation.SHIPPED, dirs_exist_ok=True)


if __name__ == "__main__":
    ship()
