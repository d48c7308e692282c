"""Whose measurements answer where a policy knows several machines: those of the nearest one.

How far a machine is from this one is counted in factors of two of the number of threads, which changes
verdicts gradually; the constants below are added for what else differs. What is not known does not count,
and on CUDA neither processor nor threads do. At equal distance the machine that the policy is of answers,
then the others in their order. Another machine's cells correct those of the first, as a calibration does
(`strategies.policy.adaptation`): where both have measured a case, the nearest answers alone.
"""

import math
from collections.abc import Mapping
from typing import Any

from strategies.policy.adaptation import adapt
from strategies.policy.calibration import counted, factor
from strategies.policy.schema import Policy
from strategies.policy.validators import Validators

INSTRUCTION_SET = 1.0  # registers of twice the width are worth a factor of two
PROCESSOR = 0.5  # caches and clocks differ, the kernels are the same
TORCH = 0.25  # of another major or minor version most of the kernels are the same
GPU = 1.0


def distance(machine: Mapping[str, Any], here: Validators, device: str, threads: int) -> float:
    """How far a `strategies.measuring.machine.Machine` is from here, for a kind of device.

    Example:
        >>> here = Validators("AMD EPYC", "AVX2", "2.13.0", "mkl", "0.1.0")
        >>> machine = {"cpu": "AMD EPYC", "threads": 2, "torch": "2.9.1"}
        >>> distance(machine, here, "cpu", 8)
        2.25
    """

    def differs(name: str, mine: str) -> bool:
        return bool(machine.get(name)) and machine[name] != mine

    version = machine.get("torch", "")
    far = TORCH * (bool(version) and minor(version) != minor(here.torch))
    if device == "cuda":
        return far + GPU * (here.gpu not in machine.get("gpu", "").split(", "))
    far += INSTRUCTION_SET * differs("instruction_set", here.instruction_set)
    far += PROCESSOR * differs("cpu", here.cpu)
    return far + factor(machine.get("threads", 0) or threads, threads)


def nearest(
    policy: Policy, here: Validators, device: str, threads: int
) -> tuple[Policy, float, str]:
    """What a policy says of this machine, how far that is from here, and whose it is, in words."""

    def distance_of(machine: Mapping[str, Any]) -> float:
        return distance(machine, here, device, threads)

    has_device = any(device in entry.cells for entry in policy.operations.values())
    first = min(policy.provenance, key=distance_of, default={})
    far = distance_of(first) if has_device and policy.provenance else math.inf
    others = (part for part in policy.others if part.device == device)
    found = min(others, key=lambda part: distance_of(part.machine), default=None)
    if found and (near := distance_of(found.machine)) < far:
        return adapt(policy, found), near, _named(found.machine)
    return policy, far, _named(first)


def _named(machine: Mapping[str, Any]) -> str:
    """As "epyc, 2 threads, torch 2.13.0"."""
    threads, version = machine.get("threads", 0), machine.get("torch", "")
    words = [machine.get("name", ""), counted(threads, "thread") if threads else ""]
    return ", ".join(filter(None, [*words, f"torch {version}" if version else ""]))


def minor(version: str) -> str:
    """A version without what changes no kernel, as "2.13" of "2.13.0+cpu"."""
    return ".".join(version.split(".")[:2])
