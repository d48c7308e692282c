"""`backward-strategies calibrate`: measures this machine, or a program on it, in minutes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import filelock
import torch
import typer

import strategies
from strategies import policy
from strategies.cli.calibration_report import tell_changes, tell_program, tell_stability
from strategies.cli.common import build_fast_path, console, file_option, notes
from strategies.cli.policy import cells_of
from strategies.cli.progress import countdown
from strategies.errors import UnusableFileError
from strategies.integration.workload import Workload
from strategies.measuring import Writer, describe, grid_cases
from strategies.measuring.noise import NOISY, VERY_NOISY, load, timing_noise
from strategies.policy import calibration, validators
from strategies.policy.adaptation import adapt
from strategies.policy.calibration import Calibration, counted
from strategies.policy.schema import Part, Policy
from strategies.selection import calibrating
from strategies.selection.planning import Plan
from strategies.selection.stability import Stabilities

STABILITY_SHARE = 0.1
"""Of the time, for the check of stability."""

_BUSY_CORES = 0.5


class Target(NamedTuple):
    """A kind of device and a number of threads."""

    device: str
    threads: int

    def __str__(self) -> str:
        return f"{self.device}, {counted(self.threads, 'thread')}"


def calibrate(
    minutes: Annotated[
        float, typer.Option(min=0.0, max=1440.0, help="How long to measure, in all.")
    ] = 3.0,
    devices: Annotated[
        str, typer.Option(metavar="LIST", help="cpu, cuda or cpu,cuda; by default all there are.")
    ] = "",
    threads: Annotated[
        str, typer.Option(metavar="LIST", help="As 1,4,all; all is what torch takes by itself.")
    ] = "all",
    workload: Annotated[Path | None, file_option("Measure a program's calls: see record.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Measure on a busy machine, too.")] = False,
) -> None:
    """Measure which strategies are the fastest on this machine; "auto" then follows that.

    What was measured goes to the user's configuration folder, beside what is known of other machines
    and numbers of threads. The same command resumes an interrupted run.
    """
    if os.environ.get("RANK", "0") != "0":
        console.print("rank 0 calibrates; its file serves all ranks")
        return
    targets = _targets(devices, threads)
    program = Workload.read(workload) if workload else None
    shipped = Policy.read(policy.SHIPPED)
    with _alone(), contextlib.ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        before = calibration.known()
        _look_around(force)
        build_fast_path()
        seconds = 60 * minutes / len(targets)
        parts = [_calibrated(target, shipped, before, seconds, program) for target in targets]
        before.having(parts).save(calibration.location(), parents=True)
        for target in targets:
            _draft(target, program).unlink(missing_ok=True)
    policy.refresh()
    pairs = zip(parts, targets, strict=True)
    told = ", ".join(f"{counted(cells_of(part), 'cell')} ({target})" for part, target in pairs)
    console.print(
        f'{calibration.location()} has {told}, which "auto" follows here.', soft_wrap=True
    )


def _calibrated(
    target: Target, shipped: Policy, known: Calibration, seconds: float, program: Workload | None
) -> Part:
    torch.set_num_threads(target.threads)
    shipped, _ = policy.resolve_for_machine(shipped, policy.SHIPPED_NAME, *target)
    machine, devices = describe(), _DEVICES[target.device]
    place = validators.here(target.device), *target
    old = next((part for part in known.parts if part.place == place), None)
    cases = grid_cases.timed("cpu") if program is None else program.cases()
    cases = [case for case in cases if case.device in devices]
    plan = Plan(cases, shipped, all_of_them=program is not None)
    before = shipped
    if program is not None and isinstance(followed := policy.active(devices[0])[0], Policy):
        before = followed

    def found(stability: Stabilities) -> tuple[Part, Policy]:
        part = calibrating.part(writer.cells, shipped, stability, machine, target.device)
        return part, adapt(shipped, part.over(old) if old else part)

    with _resumable(target, program) as writer, countdown(seconds, notes) as begins:
        share = seconds * STABILITY_SHARE
        cells = calibrating.measured(
            plan, writer, seconds - share, begins=lambda what: begins(f"{target}: {what}")
        )
        _, after = found({})
        used = calibrating.used(after, target.device, {cell.case.operation for cell in cells})
        dtypes = list(dict.fromkeys(cell.case.dtype_name for cell in cells))
        stability = calibrating.checked(used, devices[-1], dtypes, share, begins=begins)
    part, after = found(stability)
    changes = list(calibrating.changes(cells, before, after))
    if program is None:
        tell_changes(str(target), changes)
    else:
        tell_program(str(target), program, changes, after)
    tell_stability(stability)
    return part


_DEVICES = {"cpu": ("cpu",), "cuda": ("cuda", "cuda:0")}
"""How cases name the device that is measured."""


def _targets(devices: str, threads: str) -> list[Target]:
    there = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    kinds = devices.split(",") if devices else there
    for kind in kinds:
        if kind not in there:
            raise ValueError(f"--devices {devices}: there is {', '.join(there)}")
    counts, most = [], os.cpu_count() or 1
    for count in threads.split(","):
        if count != "all" and not (count.isdecimal() and 1 <= int(count) <= most):
            raise ValueError(f"--threads {threads}: give numbers from 1 to {most}, or all")
        counts.append(torch.get_num_threads() if count == "all" else int(count))
    return [
        Target(kind, count)
        for kind in dict.fromkeys(kinds)
        # What a GPU does, threads do not change.
        for count in (dict.fromkeys(counts) if kind == "cpu" else [torch.get_num_threads()])
    ]


def _look_around(force: bool) -> None:
    """Warns of a machine that does something else besides, and refuses one that does little else."""
    factor, others = timing_noise(), load()
    advice = "stop other programs, or measure later"
    if factor >= VERY_NOISY and not force:
        raise ValueError(
            f"the machine is busy: the same work, done twice in a row, differs by a factor of {factor:.1f} "
            f"(load {others:.1f} a core); {advice}, or give --force"
        )
    if factor >= NOISY or others >= _BUSY_CORES:
        notes.print(
            f"the machine is not quiet: the same work differs by a factor of {factor:.2f}, load "
            f"{others:.1f} a core. What is not clear will count less; {advice} for a better answer."
        )


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Nobody else calibrates here meanwhile, and measures what this run takes from the machine."""
    path = calibration.location().with_name("calibrating.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path, timeout=0):
            yield
    except filelock.Timeout as error:
        raise ValueError("another process calibrates this machine") from error
    except OSError as error:
        raise UnusableFileError(path, f"cannot be written ({error.strerror})") from error


def _draft(target: Target, program: Workload | None) -> Path:
    """What an interrupted run leaves."""
    what = "program" if program else "grid"
    name = f"calibrating-{what}-{target.device}-{target.threads}.json"
    return calibration.location().with_name(name)


@contextlib.contextmanager
def _resumable(target: Target, program: Workload | None) -> Iterator[Writer]:
    """The cells of an interrupted run on this machine; Ctrl-C says how to go on."""
    path, arguments = _draft(target, program), {"strategies": list(strategies.available())}
    arguments |= {"cases": [str(case) for case in program.cases()]} if program else {}
    try:
        writer = Writer(path, "calibration", arguments, describe())
    except UnusableFileError:
        path.unlink(missing_ok=True)  # of another version, machine or program
        writer = Writer(path, "calibration", arguments, describe())
    if writer.cells:
        notes.print(f"{target}: {len(writer.cells)} cells of an interrupted run are kept")
    try:
        yield writer
    except KeyboardInterrupt:
        kept = f"{len(writer.cells)} cells are kept"
        raise KeyboardInterrupt(f"{kept}; the same command goes on from there") from None
