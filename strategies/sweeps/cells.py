"""The cells of a sweep: what a class of machines is to measure."""

import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import Any

from strategies.integration.workload import Workload
from strategies.measuring import TIMED, Case, Objective, grid_cases
from strategies.sweeps.config import Sweep

CUDA = "cuda:0"
"""The device of a class with GPUs: the first of those that a job is given."""


@dataclass(frozen=True)
class SweepCell:
    """A case that a class measures; without objectives, errors and memory are all that is measured.

    After `timeout` seconds it hangs.
    """

    machines: str
    case: Case
    objectives: tuple[Objective, ...]
    timeout: float = field(default=math.inf, compare=False)

    @property
    def key(self) -> str:
        """What its files are named, below a folder of its class.

        Example:
            >>> SweepCell("epyc", Case.parse("pinv 100x8x4 rank=2"), ()).key
            'pinv-100x8x4-rank-2-float64-cpu.fa09'
        """
        text = str(self.case)
        digest = hashlib.blake2b(text.encode(), digest_size=2).hexdigest()
        return re.sub(r"[^\w.]+", "-", text) + "." + digest


def cells_of(sweep: Sweep, machines: str) -> list[SweepCell]:
    """The cells of a class, in the order in which `backward-strategies measure` measures them.

    Of a workload, those whose device is what the class has; ValueError says that there are none.
    """
    device, workload = CUDA if sweep.classes[machines].gpu else "cpu", sweep.workload
    if workload is None:
        timed = grid_cases.timed(sweep.grid, [device])
        judged = grid_cases.judged(sweep.grid, [device])
    else:
        cases = Workload.read(workload).cases()
        timed, judged = [case for case in cases if case.device[:4] == device[:4]], []
    if not timed:
        raise ValueError(f"class {machines}: {workload} has no calls for its device, {device}")
    clocked = TIMED if sweep.objective == "both" else (Objective(sweep.objective),)
    objectives: dict[Case, tuple[Objective, ...]] = dict.fromkeys([*timed, *judged], ())
    objectives |= dict.fromkeys(timed, clocked)
    return [SweepCell(machines, case, of) for case, of in objectives.items()]


def arguments(sweep: Sweep, machines: str) -> dict[str, Any]:
    """What the results of a class depend on besides machine and software; kept in its files."""
    chosen = sweep.classes[machines]
    return {
        "grid": sweep.grid or str(sweep.workload),
        "objective": sweep.objective,
        "budget": sweep.budget,
        "class": machines,
        "cpu": chosen.cpu,
        "gpu": chosen.gpu,
        "threads": chosen.threads,
    }
