"""Where and with what something is measured."""

import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import torch

from strategies.policy.validators import blas, processor


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What times depend on besides the case, as text.

    Attributes:
        gpu: names of the CUDA devices, separated by commas.
        commit: of this project, where it is a checkout.
        started_at: ISO 8601, UTC.
        libraries: versions of other libraries that were measured.
        load: processes that waited for a core, over the cores, when the run began.
        noise: by what factor equal work differed in time then, or threads waited for a core.
    """

    name: str
    cpu: str = ""
    gpu: str = ""
    threads: int = 0
    torch: str = ""
    blas: str = ""
    commit: str = ""
    started_at: str = ""
    libraries: dict[str, str] = {}
    instruction_set: str = ""
    load: float | None = None
    noise: float | None = None


def describe(libraries: tuple[str, ...] = ()) -> Machine:
    """This machine, and the state that the process is in, with versions of these distributions.

    How busy it is `strategies.measuring.noise.with_load_and_noise` adds, for what times are kept of.
    """
    return Machine(
        name=platform.node(),
        cpu=processor(),
        gpu=", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
        blas=blas(),
        commit=_commit(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        libraries={name: importlib.metadata.version(name) for name in libraries},
        instruction_set=torch.backends.cpu.get_cpu_capability(),
    )


def _commit() -> str:
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return ""
    asked = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
