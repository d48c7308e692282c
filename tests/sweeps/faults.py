"""A separately installed strategy that kills its process, hangs or raises in matrices of certain sizes.

With it comes a clock that says the same on every machine: times on shared cores mean nothing, and two
sweeps of one machine should lead to one policy.
"""

import signal
import subprocess
import sys
from pathlib import Path

from strategies.integration.workload import Call, Workload

MODULE = """
import os, signal, time, zlib
from pathlib import Path
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.measuring import measure as measuring
from strategies.measuring.measurement import Timing
from strategies.sweeps import cell

def crash():
    os.kill(os.getpid(), signal.SIGKILL)

def crash_once():
    try:
        Path(__file__).with_name("crashed").open("x")
    except FileExistsError:
        return
    os.abort()

def hang():
    time.sleep(1e6)

def fail():
    raise TypeError("not for seven")

FAULTS = {5: crash, 6: hang, 7: fail, 8: crash_once}

class Faulty(TriangularSolve):
    name = "faulty"
    summary = "triangular_solve that fails for some sizes"

    def factor_square(self, matrix, **options):
        FAULTS.get(matrix.shape[-1], lambda: None)()
        return super().factor_square(matrix, **options)

measure = cell.measure

def measure_few(case, names, **options):
    global now
    now = case
    few = [name for name in names if name in ("native", "triangular_solve", "faulty")]
    return measure(case, few, **options)

def same_everywhere(samplers, *, budget):
    found = {}
    for name in samplers:
        seconds = 1e-3 + 1e-6 * (zlib.crc32(f"{now} {name}".encode()) % 1000)
        found[name] = Timing(seconds, seconds, seconds, (seconds, seconds))
    return found

cell.measure = measure_few
measuring.interleaved = same_everywhere
"""

BAD = ("inv 5x5 float64 cpu", "inv 6x6 float64 cpu", "inv 7x7 float64 cpu")
REASONS = (
    "was ended by SIGKILL, in faulty",
    "took more than",
    "raised TypeError: not for seven, in faulty",
)


def install(site: Path, package) -> None:
    """Puts the strategy in a folder for PYTHONPATH, by the fixture `package`."""
    package(site, "backward_strategies", "faulty = faulty:Faulty")
    (site / "faulty.py").write_text(MODULE)


def begin(*arguments) -> subprocess.Popen:
    """A command of the package."""
    # Else, where a shell has started the tests in the background, children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "strategies", *map(str, arguments)]
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, start_new_session=True, **said)


def save_workload(path: Path, cases: list[str]) -> None:
    """A recording of a program that calls these."""
    same = {"function": "torch.linalg.inv", "at": "train.py:1", "shapes": ((2, 2),)}
    same |= {"dtype": "float64", "device": "cpu", "count": 1, "forward": 0.0}
    calls = tuple(Call(case=case, **same) for case in cases)
    Workload(program=("train.py",), seconds=1.0, machine={}, calls=calls).save(path)
