"""The client libraries, and their tests: those of the source distributions, in the installed versions."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LIBRARIES", "Library", "named"]


@dataclass(frozen=True, eq=False)
class Library:
    """A distribution whose tests are run.

    Attributes:
        name: of the distribution, and of the module.
        tests: what pytest is given, relative to the sources.
        environment: variables that its tests are run with.
    """

    name: str
    tests: tuple[str, ...]
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
                _download(f"{self.name}=={self.version}", Path(draft))
                (archive,) = Path(draft).glob("*.tar.gz")
                with tarfile.open(archive) as opened:
                    opened.extractall(draft, filter="data")
                (Path(draft) / archive.name.removesuffix(".tar.gz")).rename(unpacked)
        return unpacked


def _download(requirement: str, folder: Path) -> None:
    """Downloads a source distribution; what builds it is installed, as pip asks it for its name."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*command, "--no-binary=:all:", f"--dest={folder}", requirement], check=True)


LIBRARIES = (
    Library("linear_operator", ("test",)),
    Library("gpytorch", ("test",)),
    Library("normflows", ("normflows",)),
    Library("tensorly", ("tensorly",), {"TENSORLY_BACKEND": "pytorch"}),
)


def named(name: str) -> Library:
    """The library of this name.

    Raises:
        ValueError: there is none.

    Example:
        >>> named("gpytorch").tests
        ('test',)
    """
    for library in LIBRARIES:
        if library.name == name:
            return library
    raise ValueError(f"no library {name}: there is {', '.join(each.name for each in LIBRARIES)}")
