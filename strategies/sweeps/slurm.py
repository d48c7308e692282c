"""A sweep on a cluster: chunks as the tasks of Slurm's arrays, submitted by submitit.

What Slurm says is used for two things alone: a cell that a live job will come to is not submitted once
more, and jobs are cancelled. Either may be wrong without harm, for a worker leaves alone what has been
measured or is being measured. submitit asks the accounting for the state of a job, which knows a
lost node's job as failed though Slurm runs it again, and which not every cluster has; the queue has both.
"""

import signal
import subprocess
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from strategies.files.documents import decoded, json_text
from strategies.files.writing import write_text
from strategies.sweeps.attempts import this_process
from strategies.sweeps.cells import SweepCell
from strategies.sweeps.config import Sweep
from strategies.sweeps.folder import Folder
from strategies.sweeps.plan import ClassPlan

_LARGEST_ARRAY = 1000
"""Tasks: Slurm's own limit, where it was not changed, is 1001."""

_NOTICE = 60
"""Seconds between the signal that time is up and its end; Slurm may send it a minute early."""


class SlurmError(ValueError):
    """Slurm, or a command of it, is not there or refuses."""


class Jobs(msgspec.Struct, frozen=True):
    """An array that was submitted, by Slurm's number: its class, and the keys of each task's cells."""

    number: str
    machines: str
    tasks: tuple[tuple[str, ...], ...]


def run_job(sweep: Sweep, machines: str, cells: Sequence[SweepCell]) -> None:
    """Works until all is done or the job has to end; if its time is up, it is queued once more."""
    from strategies.sweeps.worker import work  # workers need Unix; a command line does not

    if work(Folder(sweep), machines, cells) == signal.SIGUSR2:
        _slurm("scontrol", "requeue", this_process().job)


def submit(folder: Folder, plan: ClassPlan) -> list[Jobs]:
    """Submits the chunks of a class as an array, or as several where there are very many."""
    try:
        import submitit
    except ImportError as error:
        raise ImportError("a cluster needs submitit: pip install submitit") from error
    machines, submitted = plan.machines, []
    for start in range(0, len(plan.chunks), _LARGEST_ARRAY):
        part = slice(start, start + _LARGEST_ARRAY)
        chunks, limit = plan.chunks[part], max(plan.limits[part])
        try:
            executor = submitit.SlurmExecutor(folder.path / "slurm")
            executor.update_parameters(**_parameters(folder, machines, limit))
            jobs = executor.map_array(partial(run_job, folder.sweep, machines), chunks)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            raise SlurmError(f"class {machines} cannot be submitted: {error}") from error
        number = jobs[0].job_id.partition("_")[0]
        keys = tuple(tuple(cell.key for cell in chunk) for chunk in chunks)
        submitted.append(Jobs(number, machines, keys))
        write_text(folder.path / "jobs" / f"{number}.json", json_text(submitted[-1]), parents=True)
    return submitted


def live(folder: Folder) -> dict[str, dict[str, str]]:
    """Of every class, the keys of cells in jobs that are waiting or running, and the job's state."""
    found: dict[str, dict[str, str]] = {machines: {} for machines in folder.sweep.classes}
    submitted = _submitted(folder)
    states = _queue() if submitted else {}
    for jobs in submitted:
        for index, keys in enumerate(jobs.tasks):
            state = states.get(f"{jobs.number}_{index}") or states.get(f"{jobs.number}_N/A")
            if state:
                found.setdefault(jobs.machines, {}).update(dict.fromkeys(keys, state))
    return found


def cancel(folder: Folder) -> list[str]:
    """Ends all jobs of a sweep that are waiting or running, and returns their numbers."""
    queued = {job.partition("_")[0] for job in _queue()}
    numbers = [jobs.number for jobs in _submitted(folder) if jobs.number in queued]
    if numbers:
        _slurm("scancel", *numbers)
    return numbers


def _parameters(folder: Folder, machines: str, limit: int) -> dict[str, Any]:
    """What submitit is told: a whole node, one process, the class's own wishes."""
    chosen = folder.sweep.classes[machines]
    options = ("partition", "constraint", "gres", "account", "qos")
    wishes = {name: wish for name in options if (wish := getattr(chosen, name))}
    if refused := [refusal.node for refusal in folder.refusals(machines)]:
        wishes["exclude"] = ",".join(refused)
    return wishes | {
        "job_name": f"sweep-{machines}",
        "time": limit,
        "nodes": 1,
        "ntasks_per_node": 1,
        "cpus_per_task": chosen.threads,
        "exclusive": True,
        "setup": [*chosen.setup, f"export OMP_NUM_THREADS={chosen.threads}"],
        "signal_delay_s": _NOTICE,
        "stderr_to_stdout": True,
        # The worker pins its threads itself: without this its step has one core.
        "srun_args": ["--cpu-bind=none"],
        "additional_parameters": {"requeue": True, "mem": "0"},
    }


def _submitted(folder: Folder) -> list[Jobs]:
    paths = sorted((folder.path / "jobs").glob("*.json"))
    return [decoded(path, Jobs) for path in paths]


def _queue() -> dict[str, str]:
    """The states of this user's jobs that wait or run, by array and task, as 12_3."""
    lines = _slurm("squeue", "--me", "--noheader", "--array", "--format=%F_%K %T").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def _slurm(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except FileNotFoundError as error:
        raise SlurmError(f"there is no {command[0]} here: is this a node of a cluster?") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmError(f"{command[0]} does not answer") from error
    except subprocess.CalledProcessError as error:
        raise SlurmError(f"{command[0]}: {error.stderr.strip()}") from error
    return done.stdout
