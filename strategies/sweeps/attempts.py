"""Tries: who measures a cell, and how earlier attempts have ended, without a lock.

Each try of a cell is a file, numbered from 1. Whoever creates the next number, which a file system lets
one process do, has the cell; it touches the file now and then, so that others see that it lives, and loses
the cell as soon as there is a higher number. A failed try keeps its file, with the reason. One that was
stopped on purpose removes it.
"""

import contextlib
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from strategies.files.documents import json_text
from strategies.files.writing import DRAFT, write_bytes
from strategies.measuring.machine import Machine

BEAT = 10.0
"""Seconds between two signs of life."""

SILENCE = 180.0
"""Seconds without one after which a holder is taken for dead: file systems on a network may show a file
as it was a minute ago."""

MOST_FAILURES = 2
"""Tries that failed: one, and one more."""

MOST_LOSSES = 3
"""Tries whose process vanished with its node or job. The cell may have been the cause, or bad luck."""


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who tries, and what came of it: the machine and the reason are set when it fails.

    The node is what the scheduler calls the host, and `life` how often its job has been started anew.
    """

    host: str
    pid: int
    node: str = ""
    job: str = ""
    life: str = ""
    machine: Machine | None = None
    reason: str = ""


def this_process() -> Holder:
    """The holder that this process would be."""
    host, slurm = platform.node(), os.environ.get
    job = slurm("SLURM_JOB_ID", "")
    if array := slurm("SLURM_ARRAY_JOB_ID"):
        job = f"{array}_{slurm('SLURM_ARRAY_TASK_ID')}"
    life = slurm("SLURM_RESTART_COUNT", "")
    return Holder(host, os.getpid(), slurm("SLURMD_NODENAME", host), job, life)


@dataclass(frozen=True)
class Past:
    """What the files of a cell's tries say: how many there are, and who failed, vanished or is at it."""

    count: int
    failures: tuple[Holder, ...]
    losses: tuple[Holder, ...]
    running: Holder | None

    @property
    def is_hopeless(self) -> bool:
        return len(self.failures) >= MOST_FAILURES or len(self.losses) >= MOST_LOSSES

    @property
    def reason(self) -> str:
        """Why there is no result, by the last try that ended."""
        if self.failures:
            return self.failures[-1].reason
        nodes = ", ".join(holder.node for holder in self.losses)
        return f"{len(self.losses)} jobs ended while it ran, on {nodes}" if nodes else ""


def past(stem: Path, me: Holder | None = None) -> Past:
    """Reads the tries `stem.1`, `stem.2`, ...; of my own job, earlier lives are dead."""
    holders: list[Holder] = []
    while (path := _numbered(stem, len(holders) + 1)).exists():
        holders.append(_read(path))
    running = holders[-1] if holders and not holders[-1].reason else None
    if running and not _lives(running, _numbered(stem, len(holders)), me):
        running = None
    failures = tuple(holder for holder in holders if holder.reason)
    losses = tuple(holder for holder in holders if not holder.reason and holder is not running)
    return Past(len(holders), failures, losses, running)


class Try:
    """A cell that is this process's own until it is lost, released or failed."""

    def __init__(self, stem: Path, number: int, holder: Holder) -> None:
        self.stem, self.number, self.holder = stem, number, holder
        self._beaten = time.monotonic()

    @property
    def path(self) -> Path:
        return _numbered(self.stem, self.number)

    def is_mine(self) -> bool:
        """Whether nobody has taken this process for dead; a sign of life if one is due."""
        if time.monotonic() - self._beaten > BEAT:
            self._beaten = time.monotonic()
            with contextlib.suppress(OSError):
                os.utime(self.path)
        return self.path.exists() and not _numbered(self.stem, self.number + 1).exists()

    def fail(self, machine: Machine, reason: str) -> None:
        ended = msgspec.structs.replace(self.holder, machine=machine, reason=reason)
        write_bytes(self.path, json_text(ended).encode())
        self.holder = ended

    def release(self) -> None:
        """Leaves no trace of what did not fail: the cell was measured, or the work stopped."""
        if not self.holder.reason and self.is_mine():  # numbers have no gaps
            self.path.unlink(missing_ok=True)


def begin(stem: Path, me: Holder) -> Try | None:
    """The next try of a cell, or None: it is hopeless, or another process is at it."""
    before = past(stem, me)
    if before.is_hopeless or before.running:
        return None
    attempt = Try(stem, before.count + 1, me)
    stem.parent.mkdir(parents=True, exist_ok=True)
    try:
        with attempt.path.open("xb") as file:
            file.write(msgspec.json.encode(me))
    except FileExistsError:
        return None
    return attempt


def _numbered(stem: Path, number: int) -> Path:
    return stem.with_name(f"{stem.name}.{number}")


def _read(path: Path) -> Holder:
    """Of a file that is being written, or that a loss of power has emptied, nobody known."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):
        return Holder("", 0)


def _lives(holder: Holder, path: Path, me: Holder | None) -> bool:
    if me and holder.job and holder.job == me.job and holder != me:
        return False
    if holder.host == platform.node():
        try:
            with contextlib.suppress(PermissionError):
                os.kill(holder.pid, 0)
        except ProcessLookupError:
            return False
    with contextlib.suppress(FileNotFoundError):
        # The file system's own time, since clocks of nodes differ.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".now.", suffix=DRAFT) as file:
            now = os.fstat(file.fileno()).st_mtime
        return now - path.stat().st_mtime < SILENCE
    return False
