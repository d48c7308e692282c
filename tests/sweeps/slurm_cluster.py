"""A cluster of three nodes on this machine: Slurm's own daemons in a folder, without systemd."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")

FEATURES = {"n1": "small", "n2": "small", "n3": "large"}

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket,cred_expire=5
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdPidFile={base}/%n.pid
SlurmdLogFile={base}/%n.log
SlurmdSpoolDir={base}/spool.%n
StateSaveLocation={base}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2
ReturnToService=2
SlurmctldTimeout=5
SlurmdTimeout=5
KillWait=5
JobRequeue=1
"""


def missing_programs() -> list[str]:
    """What Debian's slurmctld, slurmd, slurm-client and munge would install."""
    return [name for name in PROGRAMS if not shutil.which(name, path=search_path())]


def search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


class Cluster:
    """Starts on entering a `with` block; within it, Slurm's commands find it by the environment."""

    def __enter__(self) -> Self:
        # A socket's path may have a hundred characters, more than which pytest's folders take.
        self.base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self._patch = pytest.MonkeyPatch()
        self._patch.setenv("SLURM_CONF", str(self.base / "slurm.conf"))
        self._patch.setenv("PATH", search_path())
        try:
            self._configure()
            self._start_munge()
            self.run("slurmctld", "-i")
            for node in FEATURES:
                self.start(node)
            self.wait_for(lambda: self.states() == dict.fromkeys(FEATURES, "idle"), 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.run("scancel", "--me")
        for node in FEATURES:
            self.lose(node)
        for daemon in ("slurmctld", "munge/munged"):
            self._end(self.base / f"{daemon}.pid")
        os.environ.clear()
        shutil.rmtree(self.base, ignore_errors=True)

    def start(self, node: str) -> None:
        """Switches a node on."""
        self.run("slurmd", "-N", node)

    def lose(self, node: str) -> None:
        """Cuts a node's power: everything that runs there is gone at once."""
        log = str(self.base / f"{node}.log")
        daemons = [pid for pid, _, name in processes() if name in ("slurmd", "slurmstepd")]
        doomed = [pid for pid in daemons if log in open_files(pid)]
        for pid in doomed:  # which grows while it is gone through
            doomed += [child for child, parent, _ in processes() if parent == pid]
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (self.base / f"{node}.pid").unlink(missing_ok=True)

    def states(self) -> dict[str, str]:
        """Of the nodes, as Slurm sees them."""
        said = self.run("sinfo", "--Node", "--noheader", "--format=%N %t")
        return dict(line.split() for line in said.splitlines())

    def run(self, *command: str) -> str:
        """One of Slurm's commands."""
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=dict(os.environ), check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.logs())
        return done.stdout

    def logs(self) -> str:
        """The last lines of all daemons."""
        return "\n".join(path.read_text()[-1500:] for path in sorted(self.base.glob("*.log")))

    def wait_for(self, condition, seconds: float) -> None:
        """Asks until it is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.3)

    def _configure(self) -> None:
        for folder in ("munge", "state", *(f"spool.{node}" for node in FEATURES)):
            (self.base / folder).mkdir()
        ports = free_ports(1 + len(FEATURES))
        user = pwd.getpwuid(os.getuid()).pw_name
        host = socket.gethostname().partition(".")[0]
        lines = CONFIGURATION.format(base=self.base, host=host, user=user, port=ports[0])
        for (node, feature), port in zip(FEATURES.items(), ports[1:], strict=True):
            lines += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 "
                f"RealMemory=2000 Feature={feature} State=UNKNOWN\n"
            )
        lines += f"PartitionName=all Nodes={','.join(FEATURES)} Default=YES MaxTime=60 State=UP\n"
        (self.base / "slurm.conf").write_text(lines)
        # Newer versions want control groups, which need systemd, unless told so; older ones do not know it.
        version = self.run("slurmctld", "-V").split()[1].split(".")
        plugin = "disabled" if (int(version[0]), int(version[1])) >= (23, 2) else "cgroup/v1"
        (self.base / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")

    def _start_munge(self) -> None:
        folder = self.base / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.run(
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/socket",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={self.base}/munged.log",
            f"--seed-file={folder}/seed",
        )

    def _end(self, file: Path) -> None:
        with contextlib.suppress(OSError, ValueError):
            pid = int(file.read_text())
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + 10
            while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            os.kill(pid, signal.SIGKILL)


def processes() -> Iterator[tuple[int, int, str]]:
    """Of every process its number, that of its parent, and the name of its program."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything: state, parent.
            named, _, rest = path.read_text().rpartition(")")
            yield int(path.parent.name), int(rest.split()[1]), named.partition("(")[2]


def open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(link.readlink()))
    return found


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
