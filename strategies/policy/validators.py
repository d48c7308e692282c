"""What measured times depend on besides the case: another machine, or another build, has other times."""

import functools
import importlib.metadata
import platform
import re
from pathlib import Path

import msgspec
import torch

_NAMES = {"cpu": "processor", "instruction_set": "instruction set", "gpu": "GPU", "cuda": "CUDA"}


class Validators(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where and with what something was measured, as far as it decides between strategies.

    Attributes:
        instruction_set: that torch uses on the processor, as AVX2.
        package: the version of this one.
        gpu: model of the CUDA device; empty for what was measured on a CPU.
        cuda: the version of CUDA that torch was built with, whose libraries compute there, likewise.
    """

    cpu: str
    instruction_set: str
    torch: str
    blas: str
    package: str
    gpu: str = ""
    cuda: str = ""

    def differences(self, other: "Validators") -> list[str]:
        """What differs from another, in words.

        Example:
            >>> old = Validators("AMD EPYC", "AVX2", "2.12.0", "mkl", "0.1.0")
            >>> msgspec.structs.replace(old, torch="2.13.0").differences(old)
            ['torch 2.13.0, not 2.12.0']
        """
        theirs = msgspec.structs.asdict(other)
        return [
            f"{_NAMES.get(name, name)} {mine or 'none'}, not {theirs[name] or 'none'}"
            for name, mine in msgspec.structs.asdict(self).items()
            if mine != theirs[name]
        ]


@functools.cache
def here(device: str = "cpu") -> Validators:
    """Those of this process, for a kind of device; RuntimeError where there is none."""
    is_cuda = device == "cuda"
    if is_cuda and not torch.cuda.is_available():
        raise RuntimeError("there is no CUDA device")
    return Validators(
        cpu=processor(),
        instruction_set=torch.backends.cpu.get_cpu_capability(),
        torch=str(torch.__version__),
        blas=blas(),
        package=importlib.metadata.version("backward-strategies"),
        gpu=torch.cuda.get_device_name() if is_cuda else "",
        cuda=torch.version.cuda or "" if is_cuda else "",
    )


def processor() -> str:
    """The model, which `platform` does not know on Linux."""
    models = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", models.read_text()) if models.exists() else None
    return found.group(1) if found else platform.processor() or platform.machine()


def blas() -> str:
    """The library of matrix products that torch was built with."""
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return found.group(1) if found else ""
