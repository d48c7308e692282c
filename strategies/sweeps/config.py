"""The file that describes a sweep: what is measured, and on which classes of machines."""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from strategies.errors import UnusableFileError
from strategies.operations.grids import GRIDS

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
ClassName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
"""It names a folder."""


class MachineClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Machines whose measurements stand for one another, and how Slurm's sbatch is asked for one.

    Attributes:
        cpu: a regular expression that is found in the model of the processor, as in /proc/cpuinfo.
        gpu: the same of the first CUDA device; if it is given, the cells are those of that device.
        threads: that torch uses, each on a core of its own.
        setup: lines of shell that are run before Python starts.
    """

    cpu: str
    gpu: str = ""
    threads: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 1
    partition: str = ""
    constraint: str = ""
    gres: str = ""
    account: str = ""
    qos: str = ""
    setup: tuple[str, ...] = ()


class Sweep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep, with paths that do not depend on the current folder.

    Attributes:
        out: the folder in which everything is kept.
        grid: whose cells are measured; empty where a workload is.
        workload: the recording whose calls are measured; None where a grid is.
        budget: seconds that the rounds of a cell and objective may take.
        chunk_minutes: how long a job is to run.
        timeout: seconds after which a cell hangs; None is many times its estimate.
    """

    out: Path
    classes: Annotated[dict[ClassName, MachineClass], msgspec.Meta(min_length=1)]
    grid: str = ""
    workload: Path | None = None
    objective: Literal["both", "backward", "forward_backward"] = "forward_backward"
    budget: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 1.0
    chunk_minutes: Positive = 20.0
    timeout: Positive | None = None


def read(path: Path) -> Sweep:
    """The sweep that a TOML file describes, with paths relative to its folder; UnusableFileError else."""
    here = path.resolve().parent
    try:
        content = path.read_bytes()
        sweep = msgspec.toml.decode(content, type=Sweep, dec_hook=lambda _, name: here / name)
    except OSError as error:
        raise UnusableFileError(path, f"cannot be read ({error.strerror})") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableFileError(path, f"is no description of a sweep: {error}") from error
    if (not sweep.grid) == (sweep.workload is None):
        raise UnusableFileError(path, "needs one of grid and workload")
    if sweep.grid and sweep.grid not in GRIDS:
        problem = f"no grid is named {sweep.grid!r}; there is {', '.join(GRIDS)}"
        raise UnusableFileError(path, problem)
    for name, machines in sweep.classes.items():
        for pattern in (machines.cpu, machines.gpu):
            try:
                re.compile(pattern)
            except re.error as error:
                problem = f"class {name}: {pattern!r} is no regular expression ({error})"
                raise UnusableFileError(path, problem) from error
    return sweep
