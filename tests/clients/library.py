"""The client libraries, and their tests: those of the source distributions, in the installed versions."""

import importlib.metadata
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, eq=False)
class Library:
    """A distribution, and a module of the same name, whose tests are run in an environment."""

    name: str
    tests: tuple[str, ...]
    """What pytest is given, relative to the sources."""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The installed one."""
        return importlib.metadata.version(self.name)

    def sources(self, folder: Path) -> Path:
        """Where its sources are; they are downloaded into the folder if they are not there yet."""
        unpacked = folder / f"{self.name}-{self.version}"
        if not unpacked.exists():
            with tempfile.TemporaryDirectory(dir=folder) as draft:
                # What builds it is installed, as pip asks it for its name.
                options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-binary=:all:"]
                download = [sys.executable, "-m", "pip", "download", *options, f"--dest={draft}"]
                subprocess.run([*download, f"{self.name}=={self.version}"], check=True)
                (archive,) = Path(draft).glob("*.tar.gz")
                with tarfile.open(archive) as opened:
                    opened.extractall(draft, filter="data")
                (Path(draft) / archive.name.removesuffix(".tar.gz")).rename(unpacked)
        return unpacked


LIBRARIES = (
    Library("linear_operator", ("test",)),
    Library("gpytorch", ("test",)),
    Library("normflows", ("normflows",)),
    Library("tensorly", ("tensorly",), {"TENSORLY_BACKEND": "pytorch"}),
)


def named(name: str) -> Library:
    """The library of this name; ValueError if there is none."""
    known = {library.name: library for library in LIBRARIES}
    if name not in known:
        raise ValueError(f"no library {name}: there is {', '.join(known)}")
    return known[name]
